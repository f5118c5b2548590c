"""`crawl.jsonl`: one JSON object a line, whatever a killed run left."""

from __future__ import annotations

import json
import os
import re

import pytest

from muniment.crawl.events import EventLog
from muniment.errors import MunimentError


@pytest.fixture
def log(tmp_path):
    """`log(left)` → an event log over a file that holds `left`, and the file."""
    opened = []

    def make(left=b""):
        path = tmp_path / "crawl.jsonl"
        path.write_bytes(left)
        opened.append(os.open(path, os.O_RDWR | os.O_APPEND))
        return EventLog(opened[-1], tmp_path), path

    yield make
    for descriptor in opened:
        os.close(descriptor)


def test_an_event_is_a_line_with_its_time(log):
    events, path = log()
    events.write("skip", url="https://a.example/\n\u2028ü", reason="robots")
    event = json.loads(path.read_bytes())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event.pop("ts"))
    assert event == {"event": "skip", "url": "https://a.example/\n\u2028ü", "reason": "robots"}
    assert path.read_bytes().count(b"\n") == 1


def test_events_are_appended(log):
    events, path = log(b'{"event":"start"}\n')
    events.write("finish")
    assert [json.loads(line)["event"] for line in path.read_bytes().splitlines()] == ["start", "finish"]


def test_a_torn_last_line_is_ended_first(log):
    events, path = log(b'{"event":"start"}\n{"event":"capt')
    events.write("start")
    lines = path.read_bytes().splitlines()
    assert lines[1] == b'{"event":"capt'
    assert json.loads(lines[2])["event"] == "start"


def test_a_whole_file_is_left_as_it_is(log):
    _, path = log(b'{"event":"start"}\n')
    assert path.read_bytes() == b'{"event":"start"}\n'


def test_several_at_once_and_none(log):
    events, path = log()
    events.write_many([])
    assert path.read_bytes() == b""
    events.write_many([{"ts": "t", "event": "capture"}, {"ts": "t", "event": "fail"}])
    assert [json.loads(line)["event"] for line in path.read_bytes().splitlines()] == ["capture", "fail"]


def test_a_log_that_cannot_be_written_is_told_once(tmp_path):
    path = tmp_path / "crawl.jsonl"
    path.touch()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        events = EventLog(descriptor, tmp_path)
        with pytest.raises(MunimentError) as caught:
            events.write("start")
        assert "\n" not in str(caught.value)
        events.write("finish")
    finally:
        os.close(descriptor)


def test_a_log_that_was_moved_away_is_begun_anew(log, tmp_path, caplog):
    events, path = log(b'{"event":"start"}\n')
    for moved in ("first", "second"):
        path.rename(tmp_path / moved)
        events.write("capture")
        assert [json.loads(line)["event"] for line in path.read_bytes().splitlines()] == ["capture"]
    assert (tmp_path / "first").read_bytes() == b'{"event":"start"}\n'
    assert [record.message for record in caplog.records] == [f"{path} was moved away: the run writes a new one"] * 2
