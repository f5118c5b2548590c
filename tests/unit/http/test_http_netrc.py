"""Accounts in netrc format: what is read, and what is refused with its line."""

from __future__ import annotations

import pytest

from muniment.errors import UsageError
from muniment.http.netrc import NetrcEntry, read_entries


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", []),
        ("machine h login a password b", [NetrcEntry(1, "h", "a", "b")]),
        ("# all\nmachine h\n  user a\n  account x\n  password b\n", [NetrcEntry(2, "h", "a", "b")]),
        ("machine h password b # no login\nmachine i login c password #d",
         [NetrcEntry(1, "h", "", "b"), NetrcEntry(2, "i", "c", "#d")]),
        ('machine h login "a b" password "c\\"d"', [NetrcEntry(1, "h", "a b", 'c"d')]),
        ("machine h login a\\ b password c\\\\d", [NetrcEntry(1, "h", "a b", "c\\d")]),
        ("machine h login a password login", [NetrcEntry(1, "h", "a", "login")]),
        ('machine h login a password ""', [NetrcEntry(1, "h", "a", "")]),
        ("macdef init\n machine x\n cd /\n\nmachine h login a password b", [NetrcEntry(5, "h", "a", "b")]),
    ],
)  # fmt: skip
def test_entries(text, entries):
    assert read_entries(text, "f") == entries


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hush", "line 1 of the auth file f is not in netrc format"),
        ("hush\n", "line 1 of the auth file f is not in netrc format"),
        ("machine h login a password b\nhush hush\n\n", "line 2 of the auth file f is not in netrc format"),
        ("machine h login a password b c\nmachine i password d", "line 1 of the auth file f is not in netrc format"),
        ("# c\nmachine h login a password", "line 2 of the auth file f is not in netrc format"),
        ("login a password hush", "line 1 of the auth file f is not in netrc format"),
        ("machine h login a password b\nmachine i login hush", "line 2 of the auth file f has a machine without"),
        ("\ndefault login a password hush", "line 2 of the auth file f is a default entry"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line_and_never_shown(text, complaint):
    with pytest.raises(UsageError) as caught:
        read_entries(text, "f")
    assert str(caught.value).startswith(complaint)
    assert "hush" not in str(caught.value)
