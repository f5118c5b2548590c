"""The digests of seed lists, however they are spelled."""

import base64
import hashlib

import pytest

from muniment.model.seed import sha1_hex

RAW = hashlib.sha1(b"payload").digest()
HEX, BASE32 = RAW.hex(), base64.b32encode(RAW).decode()


@pytest.mark.parametrize("text", [HEX, HEX.upper(), BASE32, BASE32.lower()])
@pytest.mark.parametrize("label", ["", "sha1:", "SHA1:"])
def test_every_spelling_is_the_same_digest(text, label):
    assert sha1_hex(label + text) == HEX
    assert sha1_hex(f" {label}{text}\n") == HEX


@pytest.mark.parametrize(
    "text",
    ["", "sha1:", HEX[:-1], HEX + "0", BASE32[:-1], BASE32 + "A", "1" * 32, "g" * 40, "sha256:" + "0" * 64,
     "md5:" + "0" * 32, f"sha1:{HEX}\r\nX: y", "\N{FULLWIDTH DIGIT ONE}" * 40],
)  # fmt: skip
def test_what_is_no_sha1(text):
    assert sha1_hex(text) is None
