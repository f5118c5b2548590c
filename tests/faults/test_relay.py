"""The relay that cuts the network for the fault harness: whatever is done to it, it comes back."""

from __future__ import annotations

import http.client
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.nginx import Nginx
from tests.support.relay import Relay

SIZE = 300_000


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    (tmp_path / "index.html").write_text("x" * SIZE)
    with Nginx(tmp_path) as server, Relay(("127.0.0.1", server.ports[0])) as made:
        yield made


def _get(relay: Relay) -> int:
    with urllib.request.urlopen(relay.url, timeout=20) as answer:
        return len(answer.read())


def test_it_passes_on_and_counts(relay: Relay) -> None:
    assert [_get(relay), _get(relay)] == [SIZE, SIZE]
    assert relay.requests == 2


def test_refusals_that_overlap_end(relay: Relay) -> None:
    for seconds in (0.3, 0.6, 0.1):
        relay.refuse(seconds)
        relay.reset()
    with pytest.raises(OSError, match="refused"):
        _get(relay)
    assert relay.open_again()
    assert _get(relay) == SIZE


def test_what_is_reset_is_reset_for_the_client(relay: Relay) -> None:
    client = http.client.HTTPConnection("127.0.0.1", relay.port, timeout=20)
    client.request("GET", "/")
    assert len(client.getresponse().read()) == SIZE
    assert relay.reset() == 1
    with pytest.raises(OSError, match=r"reset|Remote end closed|Broken pipe"):
        client.request("GET", "/")
        client.getresponse()
    client.close()
    assert _get(relay) == SIZE


def test_as_many_responses_are_cut_as_was_said(relay: Relay) -> None:
    relay.cut(1)
    with pytest.raises(http.client.IncompleteRead):
        _get(relay)
    assert _get(relay) == SIZE


def test_a_stall_only_takes_its_time(relay: Relay) -> None:
    relay.stall(0.3)
    began = time.monotonic()
    assert _get(relay) == SIZE
    assert time.monotonic() - began >= 0.3


def test_a_server_that_is_away_takes_nobody_and_leaves_its_clients(relay: Relay) -> None:
    client = http.client.HTTPConnection("127.0.0.1", relay.port, timeout=20)
    client.request("GET", "/")
    client.getresponse().read()
    began = time.monotonic()
    relay.away(0.6)
    with pytest.raises(OSError, match=r"reset|Remote end closed|Broken pipe"):
        client.request("GET", "/")
        client.getresponse()
    client.close()
    with pytest.raises(OSError, match="refused"):
        _get(relay)
    assert relay.open_again()
    assert time.monotonic() - began >= 0.6
    assert _get(relay) == SIZE


def test_it_answers_itself_for_a_while_on_the_same_connection(relay: Relay) -> None:
    client = http.client.HTTPConnection("127.0.0.1", relay.port, timeout=20)
    relay.answer(429, 0.5, (("Retry-After", "7"),))
    for method in ("GET", "HEAD", "GET"):
        client.request(method, "/a?b=c")
        answer = client.getresponse()
        assert (answer.status, answer.headers["Retry-After"], bool(answer.read())) == (429, "7", method == "GET")
    assert (relay.requests, dict(relay.answered)) == (0, {"/a": 3})
    time.sleep(0.5)
    client.request("GET", "/")
    assert len(client.getresponse().read()) == SIZE
    client.close()


def test_its_own_robots_txt_holds_nothing_else_up(relay: Relay) -> None:
    relay.answer_robots(503, 1000)
    with pytest.raises(urllib.error.HTTPError, match="503"), urllib.request.urlopen(f"{relay.url}robots.txt"):
        pass
    assert _get(relay) == SIZE
    assert dict(relay.answered) == {"/robots.txt": 1}


def test_requests_wait_at_the_gate(relay: Relay) -> None:
    relay.allow(1)
    threads = [threading.Thread(target=_get, args=(relay,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    assert relay.requests == 1
    relay.allow(None)
    for thread in threads:
        thread.join(20)
    assert relay.requests == 3


def test_mending_ends_everything(relay: Relay) -> None:
    relay.allow(0)
    relay.refuse(1000)
    relay.stall(1000)
    relay.cut(1000)
    relay.away(1000)
    relay.answer(502, 1000)
    relay.answer_robots(503, 1000)
    relay.mend()
    assert relay.open_again()
    assert _get(relay) == SIZE


def test_a_finish_is_sent_again_at_once_and_later(relay: Relay) -> None:
    def finish() -> None:
        client = http.client.HTTPConnection("127.0.0.1", relay.port, timeout=20)
        client.request("POST", "/v1/session/1/finish", body=b"{}" * 50_000)
        assert client.getresponse().status == 404
        client.close()

    finish()
    assert relay.repeats.sent == 0
    _wait_for(relay.repeats.kept)  # the server may answer before it has the whole body
    relay.repeat_old()
    _wait_for(lambda: relay.repeats.sent == 1)
    relay.repeat(20.0)
    finish()
    _wait_for(lambda: relay.repeats.sent == 2)
    assert _get(relay) == SIZE


def _wait_for(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
