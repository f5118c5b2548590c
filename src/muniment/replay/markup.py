"""HTML from values: every text is escaped, so that nothing of an archived page is ever markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

__all__ = ["Markup", "document", "element"]

_VOID = frozenset({"input", "link", "meta", "br", "hr"})


class Markup(str):
    """Text that is markup: made by `element` alone."""

    __slots__ = ()


Child = str | Iterable["Child"]


def element(tag: str, *children: Child, **attributes: str | bool | None) -> Markup:
    """An element; of attributes `class_` is class, `test` is data-testid, and `_` is a hyphen. None and False go."""
    given = "".join(_attribute(name, value) for name, value in attributes.items() if value not in (None, False))
    if tag in _VOID:
        return Markup(f"<{tag}{given}>")
    return Markup(f"<{tag}{given}>{''.join(map(_text, children))}</{tag}>")


def _attribute(name: str, value: str | bool | None) -> str:
    known = {"class_": "class", "for_": "for", "test": "data-testid"}.get(name) or name.replace("_", "-")
    return f" {known}" if value is True else f' {known}="{escape(str(value), quote=True)}"'


def _text(child: Child) -> str:
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return escape(child)
    return "".join(map(_text, child))


def document(title: str, *body: Child, style: str, body_class: str = "") -> str:
    """A whole page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        element("link", rel="stylesheet", href=style),
    )
    page = element("html", head, element("body", *body, class_=body_class or None), lang="en")
    return f"<!doctype html>\n{page}\n"
