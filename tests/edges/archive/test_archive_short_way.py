"""What Muniment writes, `check` reads by the short way: one pattern for the header, one step for the member."""

from __future__ import annotations

from pathlib import Path

from tests.support.exchanges import MemoryBody, exchange, page_context

from muniment.archive.check.fast_path import usual_header
from muniment.archive.segment import Segment
from muniment.archive.warc.inflate import MemberReader
from muniment.archive.warc.warcinfo import WarcInfo


def test_every_record_of_a_page_is_usual(tmp_path: Path) -> None:
    segment = Segment.open(tmp_path, tmp_path / "parts", "a-00000.warc.gz", WarcInfo(software="test"))
    links = tuple((f"http://a.example/{number}", "a") for number in range(70))
    for number, kind in enumerate(["text/html", "image/png", "text/html"]):  # deflated, and stored
        headers = (("Content-Type", kind), ("Content-Length", "40000"))
        page = exchange(f"http://a.example/page{number}", MemoryBody(b"0123456789" * 4000), headers=headers)
        segment.write(page, page_context(links))
    segment.seal()
    path = tmp_path / "a-00000.warc.gz"
    reader = MemberReader(path, path.stat().st_size)
    read = []
    while reader.position < path.stat().st_size:
        data = reader.whole()
        assert data is not None, f"the member at {reader.position} has to be read in pieces"
        read.append(usual_header(data[: data.index(b"\r\n\r\n") + 4]) is not None)
    reader.close()
    assert read == [False, *[True] * 9], "all but the warcinfo record"
