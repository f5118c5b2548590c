"""Labels and single-byte charsets are read as Chromium reads them, which follows the Encoding standard."""

from __future__ import annotations

import json

import pytest
from tests.support.chromium import Chromium

from muniment.extract.charset import _CODECS, codec_of, decode

NAMES = {"cp866": "ibm866", "cp932": "shift_jis", "cp949": "euc-kr", "big5hkscs": "big5", "cp874": "windows-874"}
"""The standard's names of codecs that have another one here."""
OF_DOCUMENTS_ALONE = {"x-user-defined", *(label for label, codec in _CODECS.items() if not codec)}


def standard(codec: str) -> str:
    """The standard's name of a codec."""
    name = codec.replace("_", "-").replace("mac-roman", "macintosh").replace("iso2022", "iso-2022")
    name = name.replace("mac-cyrillic", "x-mac-cyrillic").replace("utf-16-", "utf-16").replace("iso8859", "iso-8859")
    return NAMES.get(codec, f"windows-{name[2:]}" if name.startswith("cp125") else name)


@pytest.fixture
def page(browser: Chromium):
    return browser.page()


def test_labels_are_those_of_the_standard(page) -> None:
    labels = sorted(set(_CODECS) - OF_DOCUMENTS_ALONE)
    found = page.run(f"{json.dumps(labels)}.map((label) => new TextDecoder(label).encoding)")
    folded = {"gbk": "gb18030", "iso-8859-8-i": "iso-8859-8"}
    assert dict(zip(labels, [folded.get(name, name) for name in found], strict=True)) == {
        label: standard(_CODECS[label]) for label in labels
    }
    assert len(_CODECS) == 228


def test_single_bytes_are_those_of_the_standard(page) -> None:
    ends = "iso8859-", "cp125", "cp8", "koi8-", "mac-"
    labels = {codec: label for label, codec in _CODECS.items() if codec.startswith(ends) and label != "x-user-defined"}
    script = "(label) => [...Array(256).keys()].map((byte) => new TextDecoder(label).decode(new Uint8Array([byte])))"
    found = page.run(f"{json.dumps(list(labels.values()))}.map({script})")
    for label, characters in zip(labels.values(), found, strict=True):
        assert [decode(bytes([byte]), label) for byte in range(256)] == characters, label


@pytest.mark.parametrize(
    "said", ["", None, "utf-7", "rot13", "cp037", "base64", "idna", "utf_8_sig", "unknown", "\xa0utf-8"]
)
def test_other_names_are_none(said) -> None:
    assert codec_of(said) is None
    assert decode(b"\xc3\xa9+AGE-", said) == "\xe9+AGE-"


def test_what_is_never_decoded() -> None:
    assert decode(b"~{<:Ky2;VS{#,~}", "hz-gb-2312") == "\ufffd"
    assert codec_of(" UTF-8\n") == "utf-8"
