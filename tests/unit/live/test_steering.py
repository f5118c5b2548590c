"""What others ask of a job, read from what they left in Redis."""

from __future__ import annotations

from muniment.live.steering import READ, Reading, asked
from muniment.model.network.live import Outside

WRITTEN = {"concurrency": "6", "delay_min": "0", "delay_max": "0", "suppress_ignore_reports": "true", "note": ""}


def _asked(patterns: frozenset[bytes] = frozenset({b"known"}), **fields: bytes | None) -> tuple[Outside, list[str]]:
    there: dict[str, bytes | None] = dict.fromkeys(READ) | {name: text.encode() for name, text in WRITTEN.items()}
    there |= {"note": None} | fields
    reading = Reading(there, patterns)
    return asked(reading, reading.changed(WRITTEN), WRITTEN, frozenset({"known"}))


def test_nothing_is_asked_when_all_is_as_written() -> None:
    assert _asked() == (Outside(), [])
    assert _asked(suppress_ignore_reports=b"1") == (Outside(), [])


def test_each_thing_is_asked_by_itself() -> None:
    assert _asked(concurrency=b"0")[0] == Outside(per_host=0)
    assert _asked(delay_min=b"5", delay_max=b"9")[0] == Outside(delay=(5, 9))
    assert _asked(suppress_ignore_reports=None)[0] == Outside(ignore_reports=True)
    assert _asked(note=b"why")[0] == Outside(explanation="why")
    assert _asked(frozenset({b"new"}))[0] == Outside(added=("new",), removed=("known",))
    assert _asked(abort_requested=b"true")[0] == Outside(abort=True)
    assert _asked(failed=b"")[0] == Outside(failed=True)


def test_nonsense_is_refused_by_itself() -> None:
    for text in (b"banana", b"-1", b"9" * 40, b"", b"\xff\xfe", b"1.5", b"\xd9\xa3"):
        outside, refused = _asked(concurrency=text, note=b"why")
        assert outside == Outside(explanation="why")
        assert len(refused) == 1, text
    assert _asked(delay_min=b"9", delay_max=b"5") == (
        Outside(), ["delay_min: 9 is above delay_max, which is 5"],
    )  # fmt: skip
    outside, refused = _asked(frozenset({b"known", b"\xff", b"x" * 2001, b"fine"}))
    assert outside == Outside(added=("fine",))
    assert len(refused) == 2
