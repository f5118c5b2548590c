"""The control socket: a line in, a line out; and what is there when nobody listens."""

from __future__ import annotations

import socket
import stat
import threading
from pathlib import Path

import pytest

from muniment.procs.socket import ask, listen, stop_listening


@pytest.fixture(params=["o", "d" * 120 + "/" + "e" * 120], ids=["near", "deep"])
def out(request, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    path.mkdir(parents=True)
    return path


def answer_once(listener: socket.socket, *pieces: bytes) -> threading.Thread:
    def serve() -> None:
        visitor, _ = listener.accept()
        with visitor:
            visitor.recv(1000)
            for piece in pieces:
                visitor.sendall(piece)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_a_question_is_answered_however_deep_the_directory_lies(out):
    with listen(out) as listener:
        thread = answer_once(listener, b'{"a":', b"1}\n")
        assert ask(out, b"{}") == b'{"a":1}\n'
        thread.join()
        assert stat.S_IMODE((out / "parts" / "control").stat().st_mode) == 0o600
    stop_listening(out)
    assert list((out / "parts").iterdir()) == []


def test_nobody_answers_where_no_run_is(out):
    assert ask(out, b"{}") is None
    (out / "parts").mkdir()
    assert ask(out, b"{}") is None


def test_what_a_killed_run_left_answers_nothing_and_is_replaced(out):
    listen(out).close()
    assert ask(out, b"{}") is None
    with listen(out) as listener:
        thread = answer_once(listener, b"ok\n")
        assert ask(out, b"{}") == b"ok\n"
        thread.join()


def test_an_answer_that_breaks_off_is_none(out):
    with listen(out) as listener:
        thread = answer_once(listener, b"hal")
        assert ask(out, b"{}") is None
        thread.join()


def test_there_may_be_no_place_for_a_socket(out):
    (out / "parts").write_text("a file")
    with pytest.raises(OSError, match="exists"):
        listen(out)
    assert ask(out, b"{}") is None
