"""Session ids: which parts of a URL say nothing about the page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.model.url import normalise_page
from muniment.rules.session_ids import page_key, without_session

HEX = "0123456789abcdef0123456789abcdef"
S = "http://s.example"

SAME = [
    (f"{S}/a;jsessionid={HEX.upper()}", f"{S}/a"),
    (f"{S}/a;jsessionid=Gk3x_9-.node1!17?x=1", f"{S}/a?x=1"),
    (f"{S}/a;v=1;jsessionid={HEX}/b", f"{S}/a;v=1/b"),
    (f"{S}/?PHPSESSID={HEX}", f"{S}/"),
    (f"{S}/a?phpsessid=abcdefghijklmnopqrstuvwxyz&x=1", f"{S}/a?x=1"),
    (f"{S}/a?x=1&PHPSESSID={HEX}", f"{S}/a?x=1"),
    (f"{S}/a?x=1&PHPSESSID={HEX}&y=2&", f"{S}/a?x=1&y=2"),
    (f"{S}/a?sid={HEX}&sid={HEX}", f"{S}/a"),
    (f"{S}/forum?t=5&sid={HEX}", f"{S}/forum?t=5"),
    (f"{S}/showthread.php?s={HEX}&t=5", f"{S}/showthread.php?t=5"),
    (f"{S}/a.cfm?CFID=1234&CFTOKEN=56789012&x=1", f"{S}/a.cfm?x=1"),
    (f"{S}/a.asp?ASPSESSIONIDQQBTRDCA=ABCDEFGHIJKLMNOPABCDEFGH", f"{S}/a.asp"),
    (f"{S}/(S(abcdefghijklmnopqrstuvwx))/a.aspx", f"{S}/a.aspx"),
    (f"{S}/app/(abcdefghijklmnopqrstuvw0)/a.aspx", f"{S}/app/a.aspx"),
    (f"{S}/a?osCsid={HEX}&zenid={HEX}", f"{S}/a"),
    (f"{S}/a?x=1&PHPSESSID={HEX}#/route", f"{S}/a?x=1#/route"),
]
OTHER = [
    f"{S}/a", f"{S}/a?", f"{S}/a?sid=12", f"{S}/a?s=shoes", f"{S}/a?session=winter-2024", f"{S}/a?id={HEX}",
    f"{S}/a?cfid=12", f"{S}/a?xsid={HEX}", f"{S}/a?x=sid={HEX}", f"{S}/a;v=1", f"{S}/(draft)/a", f"{S}/wiki/X_(film)",
    f"{S}/a?sid={HEX}0", f"{S}/a?&&", f"{S}/sid={HEX}", f"{S}/a?q=what?&x", f"{S}/a?jsessionid=", f"{S}/{HEX}",
]  # fmt: skip


@pytest.mark.parametrize(("url", "bare"), SAME)
def test_the_same_page_in_any_session(url: str, bare: str) -> None:
    assert without_session(url) == bare
    assert page_key(url) == page_key(bare)
    assert normalise_page(bare) == bare


@pytest.mark.parametrize("url", OTHER)
def test_what_may_be_another_page_stays(url: str) -> None:
    assert without_session(url) == url


@given(st.text("as?&;=/(S)id0123456789", max_size=80))
def test_it_is_done_in_one_go(tail: str) -> None:
    once = without_session(f"{S}/{tail}")
    assert once.startswith(S)
    assert without_session(once) == once or "(" in tail or ";" in tail or "&" in tail
