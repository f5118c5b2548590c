"""A video of two gigabytes and many requests at once: memory stays flat, and the front answers meanwhile."""

from __future__ import annotations

import http.client
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.replay import Replay

SIZE = 2 << 30
MARK = b"here"
AT = SIZE - (64 << 10)
URL = "http://video.test/film.mp4"
MOST_MB = 256


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WARC file with one record, most of which is a hole in the file."""
    path = tmp_path_factory.mktemp("large") / "film.warc"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: %d\r\n\r\n" % SIZE
    record = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>\r\n"
        f"WARC-Date: 2026-01-02T03:04:05Z\r\nWARC-Target-URI: {URL}\r\n"
        f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(head) + SIZE}\r\n\r\n"
    ).encode()
    with path.open("wb") as file:
        file.write(record + head)
        begin = file.tell()
        file.seek(begin + AT)
        file.write(MARK)
        file.seek(begin + SIZE)
        file.write(b"\r\n\r\n")
    return path


def seek(address: str, target: str, headers: dict[str, str]) -> tuple[int, str | None, bytes]:
    """Status, Content-Range and body of an answer to a range."""
    port = urlsplit(f"//{address}").port or 0
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        connection.request("GET", target, headers={**headers, "Range": f"bytes={AT}-{AT + 3}"})
        answer = connection.getresponse()
        status = int(answer.getheader("X-Redirect-Status") or answer.status)
        return status, answer.getheader("Content-Range"), answer.read()


def most_memory(replay: Replay) -> int:
    status = Path(f"/proc/{replay.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


@pytest.mark.parametrize("way", ["page", "exact"])
def test_a_video_seeks_in_flat_memory(archive: Path, way: str) -> None:
    with Replay(archive.parent, archive.name, *(["--exact"] if way == "exact" else [])) as replay:
        if way == "page":
            content = urlsplit(replay.content).netloc
            found = seek(content, f"/raw/2026/{URL}", {"Host": content, "Sec-Fetch-Dest": "empty"})
        else:
            found = seek(replay.opened["proxy"], URL, {"Host": "video.test"})
        assert found == (206, f"bytes {AT}-{AT + 3}/{SIZE}", MARK)
        assert most_memory(replay) < MOST_MB


def test_many_requests_never_hold_up_the_front(archive: Path) -> None:
    with Replay(archive.parent, archive.name) as replay, ThreadPoolExecutor(40) as pool:
        content = urlsplit(replay.content).netloc
        asked = [
            pool.submit(seek, content, f"/raw/2026/{URL}", {"Host": content, "Sec-Fetch-Dest": "empty"})
            for _ in range(40)
        ]
        answered = replay.get("/").status
        under_way = sum(not one.done() for one in asked)
        assert (answered, under_way > 0) == (200, True), "the front answers while all others wait"
        for one in asked:
            one.cancel()
        replay.end()
