"""Playlists of films, as packagers write them, and what hostile ones may cost."""

from __future__ import annotations

import time

import pytest

from muniment.extract.link_collector import MOST_LINKS
from muniment.extract.links import extract, may_hold_links
from muniment.model.link import FoundAs as F

URL = "http://film.example/v/list"
HLS = "application/vnd.apple.mpegurl"
DASH = "application/dash+xml"

MASTER = """#EXTM3U
#EXT-X-VERSION:6
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="en",DEFAULT=YES,URI="audio/en.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=1280000,CODECS="avc1.4d401e,mp4a.40.2",AUDIO="a"
low/index.m3u8\r
#EXT-X-STREAM-INF:BANDWIDTH=2560000

# a comment
https://cdn.example/high.m3u8?t=1
#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="iframes.m3u8"
#EXT-X-SESSION-KEY:METHOD=AES-128,URI="key.bin"
"""
MEDIA = """\ufeff#EXTM3U
#EXT-X-TARGETDURATION:4
#EXT-X-DEFINE:NAME="dir",VALUE="parts"
#EXT-X-KEY:METHOD=AES-128,URI="k?id=1",IV=0x1
#EXT-X-MAP:URI="init.mp4",BYTERANGE="720@0"
#EXTINF:4.0,
#EXT-X-BYTERANGE:1000@720
all.mp4
#EXTINF:4.0,
#EXT-X-BYTERANGE:1000
all.mp4
#EXT-X-PART:DURATION=1,URI="p1.mp4"
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="not-there-yet.mp4"
#EXTINF:2,title, with commas
{$dir}/3.ts
"""


def test_hls() -> None:
    assert extract(MASTER.encode(), HLS, URL).links == [
        ("audio/en.m3u8", F.PLAYLIST), ("low/index.m3u8", F.PLAYLIST),
        ("https://cdn.example/high.m3u8?t=1", F.PLAYLIST), ("iframes.m3u8", F.PLAYLIST), ("key.bin", F.SEGMENT),
    ]  # fmt: skip
    segments = [("k?id=1", F.SEGMENT), ("init.mp4", F.SEGMENT), ("all.mp4", F.SEGMENT), ("p1.mp4", F.SEGMENT),
                ("parts/3.ts", F.SEGMENT)]  # fmt: skip
    for kind in (HLS, "audio/x-mpegurl", "application/octet-stream", "text/plain", "binary/octet-stream", ""):
        assert may_hold_links(kind)
        assert extract(MEDIA.encode(), kind, URL).links == segments


def test_a_list_of_songs_or_stations_is_no_playlist_of_hls() -> None:
    songs = b"#EXTM3U\n#EXTINF:123,Song\nhttp://radio.example:8000/live\n"
    assert extract(songs, "audio/x-mpegurl", URL).links == []
    assert extract(MEDIA.lstrip("\ufeff").encode()[1:], HLS, URL).links == []


def dash(body: str, attributes: str = "", at_ms: int = 0) -> list[str]:
    text = f'<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" {attributes}>{body}</MPD>'
    found = extract(text.encode(), DASH, URL, at_ms=at_ms).links
    assert {found_as for _, found_as in found} <= {F.SEGMENT}
    assert all(href.startswith("http://film.example/v/") or "://o." in href for href, _ in found)
    return [href.removeprefix("http://film.example/v/") for href, _ in found]


PRESENTATIONS = [
    # a template by number: ten seconds are three segments
    ('<BaseURL>m/</BaseURL><BaseURL>http://o.example/</BaseURL><Period><AdaptationSet>'
     '<SegmentTemplate timescale="1000" duration="4000" initialization="$RepresentationID$/i.mp4"'
     ' media="$RepresentationID$/$Number%03d$-$Bandwidth$.m4s"/><Representation id="v" bandwidth="7"/>'
     '<Representation id="w" bandwidth="8"><BaseURL>hd/</BaseURL></Representation></AdaptationSet></Period>',
     'mediaPresentationDuration="PT10S"',
     ["m/v/i.mp4", "m/v/001-7.m4s", "m/v/002-7.m4s", "m/v/003-7.m4s",
      "m/hd/w/i.mp4", "m/hd/w/001-8.m4s", "m/hd/w/002-8.m4s", "m/hd/w/003-8.m4s"]),
    # a timeline; the last entry runs to the next period
    ('<Period start="PT0S"><AdaptationSet><SegmentTemplate timescale="10" media="$$$Time$.m4s"><SegmentTimeline>'
     '<S t="5" d="10" r="2"/><S d="5"/><S t="100" d="10" r="-1"/></SegmentTimeline></SegmentTemplate>'
     '<Representation id="v"/></AdaptationSet></Period><Period start="PT13S"/>', "",
     [f"${time}.m4s" for time in (5, 15, 25, 35, 100, 110, 120)]),
    # what a representation says replaces one attribute of its set
    ('<Period duration="PT4S"><AdaptationSet><SegmentTemplate duration="2" startNumber="5" media="a$Number$"/>'
     '<Representation id="v"><SegmentTemplate media="b$Number$"/></Representation></AdaptationSet></Period>', "",
     ["b5", "b6"]),
    # lists, single files, ranges of files
    ('<Period><AdaptationSet><Representation><SegmentList duration="2"><Initialization sourceURL="i"/>'
     '<SegmentURL media="1"/><SegmentURL media="2"/></SegmentList></Representation><Representation>'
     '<BaseURL>one.mp4</BaseURL><SegmentBase indexRange="8-9"><Initialization range="0-7"/></SegmentBase>'
     '</Representation><Representation><BaseURL>two.mp4</BaseURL><SegmentList><SegmentURL mediaRange="0-9"/>'
     '</SegmentList></Representation><Representation><BaseURL>sub.vtt</BaseURL></Representation></AdaptationSet></Period>',
     "", ["i", "1", "2", "one.mp4", "two.mp4", "sub.vtt"]),
    # another period, prefixes, days
    ('<d:Period xmlns:d="x"><d:AdaptationSet><d:SegmentTemplate duration="43200" endNumber="2" media="$Number$"/>'
     '<d:Representation/></d:AdaptationSet></d:Period>', 'mediaPresentationDuration="P1DT12H"', ["1", "2"]),
    ("<Period><AdaptationSet><Representation/></AdaptationSet></Period>", "", []),
]  # fmt: skip


def test_dash() -> None:
    found = [(body, links) for body, attributes, named in PRESENTATIONS if (links := dash(body, attributes)) != named]
    assert found == []


LIVE = """<Period start="PT0S"><AdaptationSet><SegmentTemplate duration="2" startNumber="0" media="$Number$"/>
<Representation/></AdaptationSet></Period>"""
SINCE = 'type="dynamic" availabilityStartTime="2001-09-09T01:46:40Z"'


@pytest.mark.parametrize(("window", "numbers"), [('timeShiftBufferDepth="PT10S"', range(45, 50)), ("", range(20, 50))])
def test_a_live_presentation_has_what_can_be_had_now(window: str, numbers: range) -> None:
    assert dash(LIVE, f"{SINCE} {window}", at_ms=1_000_000_100_000) == [str(number) for number in numbers]
    assert dash(LIVE, SINCE, at_ms=0) == []


def test_what_a_film_lists_is_bounded() -> None:
    endless = LIVE.replace('start="PT0S"', 'duration="P9999999D"').replace('duration="2"', 'duration="1"')
    assert len(dash(endless)) == MOST_LINKS
    assert len(dash(endless.replace('duration="1"', 'timescale="1000000000000000000" duration="1"'))) == MOST_LINKS
    still = '<SegmentTemplate media="a"><SegmentTimeline><S d="0" r="999999999"/></SegmentTimeline></SegmentTemplate>'
    assert dash(f"<Period><AdaptationSet>{still}<Representation/></AdaptationSet></Period>") == ["a"]


def test_entities_are_not_expanded() -> None:
    bomb = b'<!DOCTYPE MPD [<!ENTITY a "x"><!ENTITY b "&a;&a;">]><MPD><BaseURL>&b;</BaseURL><Period/></MPD>'
    assert extract(bomb, DASH, URL).links == []


_HOSTILE = [
    b"<MPD><Period><AdaptationSet>"
    + b"<SegmentBase><Initialization sourceURL='i'/></SegmentBase><Representation/>" * 50_000,
    b"<MPD><Period duration='P99D'><AdaptationSet><SegmentTemplate media='" + b"x" * 7_000
    + b"$Number$' duration='1'/>" + b"<Representation/>" * 50_000,
    b"<MPD><Period duration='P99D'><AdaptationSet><SegmentTemplate media='" + b"$Number$" * 200_000
    + b"' duration='1'/>" + b"<Representation/>" * 50_000 + b"</AdaptationSet></Period></MPD>",
    b"<MPD><BaseURL>" + b"y/" * 500_000 + b"</BaseURL><Period duration='P99D'><AdaptationSet>"
    b"<SegmentTemplate media='$Number$' duration='1'/>" + b"<Representation/>" * 50_000,
    b"<MPD>" + b"<a>" * 500_000,
    b"<MPD><Period><AdaptationSet><SegmentTemplate media='$Time$'><SegmentTimeline>" + b"<S d='1'/>" * 150_000
    + b"</SegmentTimeline></SegmentTemplate>" + b"<Representation/>" * 9_000 + b"</AdaptationSet></Period></MPD>",
    b"#EXTM3U\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"" + b"v" * 7_000 + b'"\n' + (b"{$a}" * 1_900 + b"\n") * 250,
    b"#EXTM3U\n#EXT-X-" + b'\n#EXT-X-KEY:URI="' * 100_000,
    b"#EXTM3U\n#EXT-X-KEY:" + b',URI="' * 1_300 + b"\n" + b"#EXT-X-DEFINE:NAME=" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("payload", _HOSTILE, ids=range(len(_HOSTILE)))
def test_hostile_ones_take_seconds(payload: bytes) -> None:
    started = time.process_time()
    extract(payload, DASH if payload.startswith(b"<") else HLS, URL)
    assert time.process_time() - started < 5
