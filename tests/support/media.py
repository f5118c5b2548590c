"""A video that a player seeks in, and a font, made here: what Chromium decodes and no site had to give."""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Callable

from tests.support.chromium import BrowserPage
from tests.support.gated_site import Answer
from tests.support.png import rgb_at

__all__ = ["MARKUP", "PAGES", "check_media", "font", "video"]

_RED = b64decode("0AMAnQEqQABAAD9xuNdkNK8rpqIIApAuCWkA0nAFmusGprR55ioAAP7guX64WyzJ//4IL8QfqDUa/QhK3j5dNj4CkAAAAA==")
_BLUE = b64decode("sAMAnQEqQABAAD9xuNdkNK8rpqIIApAuCWkA1XwFmusAFeIXE4AA/uuOX//BBfiD9Qa0vEYXK5U5aBCMYAAAAA==")
"""Key frames of VP8, 64 pixels wide and high, of one colour."""
_PADDING = 256 << 10


def video(seconds: int = 8) -> bytes:
    """A WebM file: red in its first half and blue in its second, with an index, and long enough to be read in parts."""
    clusters, cues, at = [], [], 0
    for second in range(seconds):
        frame = _RED if second < seconds // 2 else _BLUE
        blocks = b"".join(
            _element(0xA3, b"\x81" + struct.pack(">hB", 100 * tenth, 0x80) + frame) for tenth in range(10)
        )
        cluster = _element(0x1F43B675, _number(0xE7, 1000 * second) + blocks + _element(0xEC, bytes(_PADDING)))
        cues.append((second, at))
        clusters.append(cluster)
        at += len(cluster)
    head = _info(seconds) + _tracks()
    # offsets in an index have eight bytes each, so that its length is known before they are
    length = len(_cues(cues, 0))
    body = head + _cues(cues, len(head) + length) + b"".join(clusters)
    kind = _number(0x4286, 1) + _number(0x42F7, 1) + _number(0x42F2, 4) + _number(0x42F3, 8)
    kind += _element(0x4282, b"webm") + _number(0x4287, 2) + _number(0x4285, 2)
    return _element(0x1A45DFA3, kind) + _element(0x18538067, body)


def _info(seconds: int) -> bytes:
    duration = _element(0x4489, struct.pack(">d", 1000.0 * seconds))
    return _element(
        0x1549A966, _number(0x2AD7B1, 1_000_000) + duration + _element(0x4D80, b"t") + _element(0x5741, b"t")
    )


def _tracks() -> bytes:
    size = _element(0xE0, _number(0xB0, 64) + _number(0xBA, 64))
    entry = _number(0xD7, 1) + _number(0x73C5, 1) + _number(0x83, 1) + _element(0x86, b"V_VP8") + size
    return _element(0x1654AE6B, _element(0xAE, entry))


def _cues(cues: list[tuple[int, int]], before: int) -> bytes:
    points = (
        _element(0xBB, _number(0xB3, 1000 * second)
                 + _element(0xB7, _number(0xF7, 1) + _element(0xF1, struct.pack(">Q", before + at))))
        for second, at in cues
    )  # fmt: skip
    return _element(0x1C53BB6B, b"".join(points))


def _number(identity: int, value: int) -> bytes:
    return _element(identity, value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big"))


def _element(identity: int, data: bytes) -> bytes:
    name = identity.to_bytes((identity.bit_length() + 7) // 8, "big")
    return name + struct.pack(">Q", len(data) | 1 << 56) + data


def font() -> bytes:
    """A TrueType font whose every letter from A to Z is a block twice as wide as it is high."""
    box = struct.pack(">hhhhh", 1, 0, 0, 2000, 1000)  # one outline, and what it fills
    points = (
        struct.pack(">HH", 3, 0)
        + b"\x01" * 4
        + struct.pack(">4h", 0, 2000, 0, -2000)
        + struct.pack(">4h", 0, 0, 1000, 0)
    )
    glyph = box + points
    glyph += bytes(-len(glyph) % 4)
    return _font_file({
        b"OS/2": struct.pack(">HhHHH11h10B4L4s3H3h2H2L2h3H", 4, 2000, 400, 5, 0, *[0] * 25, b"TEST", 0x40, 65, 90,
                             1000, 0, 0, 1000, 0, 1, 0, 0, 0, 0, 32, 0),
        b"cmap": _cmap(),
        b"glyf": glyph,
        b"head": struct.pack(">LLLLHHqqhhhhHHhhh", 1 << 16, 1 << 16, 0, 0x5F0F3CF5, 0, 1000, 0, 0, 0, 0, 2000, 1000, 0,
                             8, 2, 0, 0),
        b"hhea": struct.pack(">L3hH11hH", 1 << 16, 1000, 0, 0, 2000, 0, 0, 2000, 1, 0, 0, 0, 0, 0, 0, 0, 1),
        b"hmtx": struct.pack(">Hhh", 2000, 0, 0),
        b"loca": struct.pack(">3H", 0, 0, len(glyph) // 2),
        b"maxp": struct.pack(">L14H", 1 << 16, 2, 4, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
        b"name": _names(),
        b"post": struct.pack(">LLhhLLLLL", 3 << 16, 0, 0, 0, 0, 0, 0, 0, 0),
    })  # fmt: skip


def _cmap() -> bytes:
    """Every letter is the one glyph that is drawn."""
    letters = struct.pack(">LLL", 65, 90, 1)
    groups = struct.pack(">HHLLL", 13, 0, 16 + len(letters), 0, 1) + letters
    return struct.pack(">HHHHL", 0, 1, 3, 10, 12) + groups


def _names() -> bytes:
    words = {1: "Own", 2: "Regular", 4: "Own", 6: "Own"}
    records, text = b"", b""
    for number, word in words.items():
        data = word.encode("utf-16-be")
        records += struct.pack(">6H", 3, 1, 0x409, number, len(data), len(text))
        text += data
    return struct.pack(">3H", 0, len(words), 6 + len(records)) + records + text


def _font_file(tables: dict[bytes, bytes]) -> bytes:
    at = 12 + 16 * len(tables)
    places, data = b"", b""
    for name, table in sorted(tables.items()):
        padded = table + bytes(-len(table) % 4)
        total = sum(struct.unpack(f">{len(padded) // 4}L", padded)) & 0xFFFFFFFF
        places += name + struct.pack(">LLL", total, at + len(data), len(table))
        data += padded
    return struct.pack(">LHHHH", 1 << 16, len(tables), 128, 3, 16 * len(tables) - 128) + places + data


MARKUP = (
    "<link rel=stylesheet href=/media.css><p><span id=wide>ABAB</span></p>"
    "<video id=clip src=/clip.webm preload=auto muted width=64 height=64></video>"
)
PAGES = {
    "/media.css": "@font-face { font-family: Own; src: url(/own.ttf) } #wide { font: 20px Own, serif }",
    "/own.ttf": Answer(font(), headers=(("Content-Type", "font/ttf"),)),
    "/clip.webm": Answer(video(), headers=(("Content-Type", "video/webm"),)),
}


def check_media(page: BrowserPage, picture: Callable[[], bytes], top: int = 0) -> None:
    """The font of `MARKUP` is used, and its video is played from where a reader seeks to, forwards and back."""
    page.wait("document.fonts.load('20px Own').then((found) => found.length === 1)")
    assert page.wait("wide.getBoundingClientRect().width") == 160, "letters twice as wide as high"
    page.wait("clip.readyState >= 2 && clip.duration === 8")
    x, y = page.run("(() => { const at = clip.getBoundingClientRect(); return [at.x + 20, at.y + 20] })()")
    for second, blue in ((6.5, True), (1.25, False), (7.5, True)):
        page.run(f"clip.currentTime = {second}")
        page.wait(f"!clip.seeking && clip.readyState >= 2 && clip.currentTime === {second}")
        # a frame that is decoded is painted with the next one of the page
        page.run("new Promise((over) => requestAnimationFrame(() => requestAnimationFrame(over)))")
        shown = rgb_at(picture(), int(x), int(y) + top)
        assert (shown[2] > 200, shown[0] > 200) == (blue, not blue), (second, shown)
