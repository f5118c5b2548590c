"""From a template to a page: what is shown came from strangers, so it is escaped, and controls are written out."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from muniment.clock import iso_ms, now_ms

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

__all__ = ["HEADERS", "STATIC", "page_text", "plain", "static_file"]

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""Of every answer."""
_MOST_SHOWN = 4_000
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""Controls, and what turns the direction of writing around."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
STATIC = {"dashboard.js": "text/javascript", "dashboard.css": "text/css"}


def plain(text: str) -> str:
    """Text of strangers for people: what cannot be seen is written out, and what is endless is cut."""
    if len(text) > _MOST_SHOWN:
        text = f"{text[:_MOST_SHOWN]}…"
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _finalized(value: object) -> object:
    return plain(value) if type(value) is str else value


def _exact(value: str) -> Markup:
    """A text that comes back in a form: not a character of it may change."""
    from markupsafe import escape  # noqa: PLC0415  (as below)

    return escape(value)


def _filled(pattern: str, *values: object) -> Markup:
    from markupsafe import Markup  # noqa: PLC0415  (as below)

    return Markup(pattern).format(*values)  # noqa: S704 (patterns are ours)


def _number(value: float) -> Markup:
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
    return _filled('<data value="{0}" title="{0}">{1}</data>', value, text)


def _size(value: int) -> Markup:
    size, unit = float(value), _UNITS[0]
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    text = f"{value} B" if unit == "B" else f"{size:.1f} {unit}"
    return _filled('<data class="bytes" value="{0}" title="{1} bytes">{2}</data>', value, f"{value:,}", text)


def _when(ms: int | None) -> Markup:
    if not ms:
        return _filled("–")
    return _filled('<time datetime="{0}" title="{0}">{1}</time>', iso_ms(ms), iso_ms(ms)[:19].replace("T", " "))


def _age(ms: int | None) -> Markup:
    if not ms:
        return _filled("–")
    return _filled('<time datetime="{0}" title="{0}">{1}</time>', iso_ms(ms), span((now_ms() - ms) / 1000))


def span(seconds: float) -> str:
    """A length of time in its two largest units."""
    left = int(max(0, seconds))
    told: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if left >= size or (unit == "s" and not told):
            told.append(f"{left // size} {unit}")
            left %= size
    return " ".join(told[:2])


def _quoted(text: str) -> str:
    return quote(text, safe="")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  (for the first page)

    made = Environment(
        loader=PackageLoader("muniment.web.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        exact=_exact,
        number=_number,
        size=_size,
        when=_when,
        age=_age,
        span=span,
        quoted=lambda text: quote(text, safe=""),
    )
    made.globals.update(query=lambda **given: urlencode({name: value for name, value in given.items() if value}))
    return made


def page_text(template: str, values: dict[str, Any]) -> str:
    """A page as text."""
    return _environment().get_template(template).render(values)


@cache
def static_file(name: str) -> bytes:
    """The bytes of the script or the style."""
    return (files("muniment.web.pages") / "static" / name).read_bytes()
