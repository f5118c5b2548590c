"""`crawl.jsonl`: one JSON object a line, whatever a killed run left."""

from __future__ import annotations

import json
import os
import re

import pytest

from muniment.archive.event_log import EventLog
from muniment.errors import MunimentError
from muniment.model.event import (
    CaptureEvent,
    ChangeEvent,
    DamageEvent,
    DropEvent,
    EventBatch,
    FinishEvent,
    PageEvent,
    PauseEvent,
    ResumeEvent,
    SkipEvent,
    StartEvent,
    StopEvent,
    TransferEvent,
    WorkerEvent,
)  # fmt: skip

CAPTURE, STOP = CaptureEvent("u", 200, 9), StopEvent("interrupted")


def write(log, *events):
    log.take(EventBatch(0, events))


@pytest.fixture
def log(tmp_path):
    """`log(left)` → an event log over a file that holds `left`, and the file."""
    opened = []

    def make(left=b""):
        path = tmp_path / "crawl.jsonl"
        path.write_bytes(left)
        opened.append(os.open(path, os.O_RDWR | os.O_APPEND))
        return EventLog(opened[-1], path), path

    yield make
    for descriptor in opened:
        os.close(descriptor)


def test_an_event_is_a_line_with_its_time(log):
    events, path = log()
    write(events, SkipEvent(url="https://a.example/\n\u2028ü", reason="robots"))
    event = json.loads(path.read_bytes())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event.pop("ts"))
    assert event == {"event": "skip", "url": "https://a.example/\n\u2028ü", "reason": "robots"}
    assert path.read_bytes().count(b"\n") == 1


def test_events_are_appended(log):
    events, path = log(b'{"event":"start"}\n')
    write(events, STOP)
    assert [json.loads(line)["event"] for line in path.read_bytes().splitlines()] == ["start", "stop"]


def test_a_torn_last_line_is_ended_first(log):
    events, path = log(b'{"event":"start"}\n{"event":"capt')
    write(events, STOP)
    lines = path.read_bytes().splitlines()
    assert lines[1] == b'{"event":"capt'
    assert json.loads(lines[2])["event"] == "stop"


def test_a_whole_file_is_left_as_it_is(log):
    _, path = log(b'{"event":"start"}\n')
    assert path.read_bytes() == b'{"event":"start"}\n'


def test_several_at_once_and_none(log):
    events, path = log()
    write(events)
    write(events, TransferEvent(9))
    assert path.read_bytes() == b""
    write(events, CAPTURE, TransferEvent(9), STOP)
    assert [json.loads(line)["event"] for line in path.read_bytes().splitlines()] == ["capture", "stop"]


LINES = [
    (StartEvent(7, "1", resumed=True, repaired_files=0, lost_captures=0),
     '"start","pid":7,"version":"1","resumed":true,"repaired_files":0,"lost_captures":0'),
    (PageEvent("u", "h", 1, 200, "", True, "", 9, 5), '"capture","url":"u","status":200,"bytes":9'),
    (PageEvent("u", "h", 2, 0, "reset: by peer", False, "", 0, 5),
     '"fail","url":"u","reason":"reset: by peer","attempt":2,"final":false'),
    (PageEvent("u", "h", 1, 0, "robots: no", True, "robots", 0, 5), '"skip","url":"u","reason":"robots"'),
    (SkipEvent(line=0, reason="line: bad"), '"skip","line":0,"reason":"line: bad"'),
    (DropEvent("u", 3), '"drop","url":"u","links":3'),
    (PauseEvent(reason="disk"), '"pause","reason":"disk"'),
    (PauseEvent(host="h", reason="503", until="2026"), '"pause","host":"h","reason":"503","until":"2026"'),
    (PauseEvent(reason="network", hosts=0, why=""), '"pause","reason":"network","hosts":0,"why":""'),
    (ResumeEvent(host="h", reason="503"), '"resume","host":"h","reason":"503"'),
    (ResumeEvent(reason="disk"), '"resume","reason":"disk"'),
    (WorkerEvent(number=0, pid=5, state="started"), '"worker","number":0,"pid":5,"state":"started"'),
    (WorkerEvent(number=0, state="ended", exit=0), '"worker","number":0,"state":"ended","exit":0'),
    (WorkerEvent(number=1, state="lost", exit=-9, reason="killed"),
     '"worker","number":1,"state":"lost","exit":-9,"reason":"killed"'),
    (ChangeEvent("ada", "ignores", "", "x"), '"change","who":"ada","what":"ignores","from":"","to":"x"'),
    (ChangeEvent("muniment", "requests in flight", 9, 4),
     '"change","who":"muniment","what":"requests in flight","from":9,"to":4'),
    (DamageEvent("f", 3, "why", "there", 2),
     '"damaged","file":"f","offset":3,"reason":"why","moved_to":"there","pages":2'),
    (StopEvent("terminated"), '"stop","reason":"terminated"'),
    (FinishEvent("finished", 0, 1, 2, 3), '"finish","reason":"finished","exit":0,"captured":1,"failed":2,"queued":3'),
]  # fmt: skip


def test_the_line_of_each_kind(log):
    events, path = log()
    events.take(EventBatch(1_700_000_000_123, tuple(event for event, _ in LINES)))
    begins = '{"ts":"2023-11-14T22:13:20.123Z","event":'
    assert path.read_text().splitlines() == [begins + rest + "}" for _, rest in LINES]


def test_a_log_that_cannot_be_written_is_told_once(tmp_path):
    path = tmp_path / "crawl.jsonl"
    path.touch()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        events = EventLog(descriptor, path)
        with pytest.raises(MunimentError) as caught:
            write(events, STOP)
        assert "\n" not in str(caught.value)
        write(events, STOP)
    finally:
        os.close(descriptor)


def test_a_log_that_was_moved_away_is_begun_anew(log, tmp_path, caplog):
    events, path = log(b'{"event":"start"}\n')
    for moved in ("first", "second"):
        path.rename(tmp_path / moved)
        write(events, CAPTURE)
        assert [json.loads(line)["event"] for line in path.read_bytes().splitlines()] == ["capture"]
    assert (tmp_path / "first").read_bytes() == b'{"event":"start"}\n'
    assert [record.message for record in caplog.records] == [f"{path} was moved away: the run writes a new one"] * 2
