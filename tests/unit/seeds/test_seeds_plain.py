"""What users give as text, in whatever form it comes."""

from __future__ import annotations

import gzip
import tracemalloc
from itertools import repeat

import pytest

from muniment.errors import UsageError
from muniment.seeds.plain import is_plain, plain_bytes, plain_pieces

TEXT = "".join(f"http://a.example/é{number}\n" for number in range(2000))
PLAIN = TEXT.encode()
FORMS = {
    "utf-8": PLAIN,
    "utf-16": TEXT.encode("utf-16"),
    "utf-16-be": b"\xfe\xff" + TEXT.encode("utf-16-be"),
    "utf-16-le without a mark": TEXT.encode("utf-16-le"),
    "utf-16-be without a mark": TEXT.encode("utf-16-be"),
    "gzip": gzip.compress(PLAIN),
    "gzip in members": gzip.compress(PLAIN[:9000]) + gzip.compress(PLAIN[9000:]) + bytes(700),
    "gzip of utf-16": gzip.compress(TEXT.encode("utf-16")),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
def test_every_form_gives_the_same_text(form, size):
    raw = FORMS[form]
    pieces = (raw[at : at + size] for at in range(0, len(raw), size))
    assert b"".join(plain_pieces(pieces, "the list x")) == PLAIN
    assert is_plain(raw[:512]) is (form == "utf-8")


@pytest.mark.parametrize("raw", [b"", b"a", b"\xe9\xff\n", b"a\0\0b\0", b"\0"])
def test_other_bytes_stay(raw):
    assert plain_bytes(raw, "the list x") == raw


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (gzip.compress(PLAIN)[:-20], "the list x is cut off: its gzip data has no end"),
        (gzip.compress(PLAIN)[:-8] + bytes(8), "the list x is damaged"),
        (gzip.compress(PLAIN) + b"rubbish", "the list x is damaged"),
        (gzip.compress(gzip.compress(PLAIN)), "packed with gzip twice"),
        (b"\xff\xfea\0b", "begins as UTF-16, but is not valid UTF-16"),
        (b"PK\x03\x04rest", "a zip archive, not text; unpack it"),
        (b"\xfd7zXZ\0", "unpack it with xz -d"),
        (b"BZh91AY", "unpack it with bunzip2"),
        (b"\x28\xb5\x2f\xfdx", "unpack it with zstd -d"),
        (b"PAR1...", "--from parquet"),
    ],
)
def test_what_cannot_be_read_is_named(raw, told):
    with pytest.raises(UsageError, match=told.replace("--", "")):
        plain_bytes(raw, "the list x")


def test_a_list_that_unpacks_to_very_much_is_read_in_flat_memory():
    packed = gzip.compress(b"".join(repeat(b"http://a.example/\n", 4_000_000)), 1)
    tracemalloc.start()
    assert sum(map(len, plain_pieces([packed], "the list x"))) == 72_000_000
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 << 20
