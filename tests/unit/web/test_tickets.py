"""Tickets work once and in time; sessions are signed, end, and outlive a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment.web.pages import tickets
from muniment.web.pages.tickets import Tickets, kept_key


def test_a_ticket_works_once() -> None:
    made = Tickets(b"k" * 32)
    ticket = made.issue()
    assert made.session("wrong") is None
    session = made.session(ticket)
    assert session is not None and made.is_open(session)
    assert made.session(ticket) is None
    late = made.issue()
    assert made.issue() != late
    assert made.session(late) is None, "the one before is worth nothing"


def test_a_ticket_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Tickets(b"k" * 32)
    now = tickets.monotonic()
    ticket = made.issue()
    monkeypatch.setattr(tickets, "monotonic", lambda: now + 3600)
    assert made.session(ticket) is None


def test_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Tickets(b"k" * 32)
    session = first.session(first.issue())
    assert session is not None
    assert Tickets(b"k" * 32).is_open(session), "after a restart"
    assert not Tickets(b"x" * 32).is_open(session)
    name, until, signature = session.split(".")
    assert not first.is_open(f"{name}.{int(until) + 1}.{signature}")
    for odd in ("", ".", "..", "a.b.c", session[:-1], session + "0", "\u00e9.1.2"):
        assert not first.is_open(odd)
    now = tickets.now_ms()
    monkeypatch.setattr(tickets, "now_ms", lambda: now + 13 * 3600 * 1000)
    assert not first.is_open(session), "twelve hours have passed"
    monkeypatch.undo()
    first.end(session)
    assert not first.is_open(session)


def test_the_key_is_kept_for_its_owner(tmp_path: Path) -> None:
    key = kept_key(tmp_path / "state")
    assert kept_key(tmp_path / "state") == key
    assert (tmp_path / "state" / "dashboard.key").stat().st_mode & 0o777 == 0o600
    (tmp_path / "state" / "dashboard.key").write_bytes(b"cut")
    assert len(kept_key(tmp_path / "state")) == 32
