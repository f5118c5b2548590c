"""The charset that a document is read in: labels of the Encoding standard (§4.2), and Python's codec for each."""

from __future__ import annotations

import codecs

from muniment.extract.media_type import media_type

__all__ = ["codec_of", "decode", "label"]

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_LABELS = {
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8",
    "cp866": "866 cp866 csibm866 ibm866",
    "iso8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "iso8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "iso8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "iso8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
    "iso8859-6": (
        "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e iso-8859-6-i"
        " iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987"
    ),
    "iso8859-7": (
        "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7"
        " iso_8859-7:1987 sun_eu_greek"
    ),
    "iso8859-8": (
        "csiso88598e csiso88598i csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-8859-8-i iso-ir-138 iso8859-8"
        " iso88598 iso_8859-8 iso_8859-8:1988 logical visual"
    ),
    "iso8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso8859-13": "iso-8859-13 iso8859-13 iso885913",
    "iso8859-14": "iso-8859-14 iso8859-14 iso885914",
    "iso8859-15": "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "cskoi8r koi koi8 koi8-r koi8_r",
    "koi8-u": "koi8-ru koi8-u",
    "mac-roman": "csmacintosh mac macintosh x-mac-roman",
    "cp874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
    "cp1250": "cp1250 windows-1250 x-cp1250",
    "cp1251": "cp1251 windows-1251 x-cp1251",
    "cp1252": (
        "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1"
        " iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252 x-user-defined"
    ),
    "cp1253": "cp1253 windows-1253 x-cp1253",
    "cp1254": (
        "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5"
        " windows-1254 x-cp1254"
    ),
    "cp1255": "cp1255 windows-1255 x-cp1255",
    "cp1256": "cp1256 windows-1256 x-cp1256",
    "cp1257": "cp1257 windows-1257 x-cp1257",
    "cp1258": "cp1258 windows-1258 x-cp1258",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "gb18030": "chinese csgb2312 csiso58gb231280 gb18030 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk",
    "big5hkscs": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc_jp": "cseucpkdfmtjapanese euc-jp x-euc-jp",
    "iso2022_jp": "csiso2022jp iso-2022-jp",
    "cp932": "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis",
    "cp949": (
        "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949"
    ),
    "utf-16-be": "unicodefffe utf-16be",
    "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
    "": "csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr replacement",
}
"""Labels by codec. Those of the last line are never decoded; a page of x-user-defined is windows-1252."""
_CODECS = {label: codec for codec, labels in _LABELS.items() for label in labels.split()}
_OTHERWISE = {"koi8-u": {0x255D: "\u045e", 0x256C: "\u040e"}}
_UNKNOWN = {"cp1255": (b"\xca", "\u05ba")}
"""Letters of codecs that the standard has others for, and a byte that a codec does not know."""
_C1_ENDS = 0xA0


def label(content_type: str) -> str | None:
    """Return the charset that the fields of a Content-Type name, as written, or None."""
    return media_type(content_type).charset or None


def codec_of(said: str | None) -> str | None:
    """Python's codec for a label, as browsers have it; empty for what is never decoded, None for an unknown one."""
    return _CODECS.get(said.strip("\t\n\f\r ").lower()) if said else None


def decode(payload: bytes, declared: str | None) -> str:
    """Decode by byte-order mark, then by the declared label, then as UTF-8; faults become U+FFFD."""
    for mark, name in _MARKS:
        if payload.startswith(mark):
            return payload[len(mark) :].decode(name, "replace")
    codec = codec_of(declared)
    if codec is None:
        return payload.decode("utf-8", "replace")
    if not codec:
        return "\ufffd"
    byte, letter = _UNKNOWN.get(codec, (b"", ""))
    parts = payload.split(byte) if byte else [payload]
    text = letter.join(part.decode(codec, "muniment.charset") for part in parts)
    return text.translate(_OTHERWISE[codec]) if codec in _OTHERWISE else text


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """What a codec does not know: controls where the standard has these, else one U+FFFD."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    fault = error.object[error.start]
    is_control = error.encoding == "charmap" and fault < _C1_ENDS
    return chr(fault) if is_control else "\ufffd", error.end


codecs.register_error("muniment.charset", _replaced)
