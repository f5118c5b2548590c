"""Outlinks: references of a document become normalised URLs and the packed entries of a finish.

Pages of one site repeat their references, so the target of a reference is remembered per origin, under its
path from the root: a relative one is first joined as text, which is enough to find what is known already. References of
plain characters alone, which are nearly all, are joined as text for good: the parser would give the same (a test holds
the two together) at five times the cost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import cast

from muniment.archive.warc.records import outlink_line
from muniment.crawl.pages import NOTHING, ResolvedLinks
from muniment.extract.link_collector import cleaned
from muniment.model.link import FoundAs, Kind
from muniment.model.url import MOST_URL, directory_of, origin_of, resolve, shortened, url_key
from muniment.rules.session_ids import page_key

__all__ = ["Outlinks", "join_plain"]

_MOST_REMEMBERED = 150_000
_BYTE = tuple(bytes([found_as]) for found_as in FoundAs)
_LABEL = tuple(found_as.label for found_as in FoundAs)
_A = FoundAs.A
_IS_LINK = frozenset(found_as for found_as in map(int, FoundAs) if FoundAs(found_as).kind is Kind.LINK)

# Segments that do not begin with a dot, and characters that the URL Standard leaves as they are in a path and a query.
_PLAIN = re.compile(
    r"((?:\.\./)*)([A-Za-z0-9_~][A-Za-z0-9_.~-]*(?:/[A-Za-z0-9_~][A-Za-z0-9_.~-]*)*/?)(\?[A-Za-z0-9_.~=&%+,;:@/-]*)?"
).fullmatch


class _LinkTarget:
    """The target of a reference; `told` once the tracker got the URL's text from this worker."""

    __slots__ = ("entry", "key", "line", "told", "url")

    def __init__(self, url: str, key: bytes) -> None:
        self.url, self.key, self.told = shortened(url), key, False
        # as most references are: found as <a href>
        self.entry, self.line = self.key + _BYTE[_A], outlink_line(self.url, _LABEL[_A])


_NOWHERE = _LinkTarget("", b"")
"""The target of a reference that is not an http or https URL."""


class Outlinks:
    """Resolves references; the pages must be finished in the order in which they are resolved here.

    A URL's text is sent once, with the first page that leads to it; later pages send its key only. Pages that are
    finished in another order, as when some are rendered first, send it each time.
    """

    def __init__(self, key: Callable[[str], bytes] = page_key, *, in_order: bool = True) -> None:
        """`key` is the key of a page by its URL."""
        self._key, self._in_order = key, in_order
        self._by_origin: dict[str, dict[str, _LinkTarget]] = {}
        self._by_url: dict[str, _LinkTarget] = {}
        self._remembered = 0

    def redirect(self, url: str, reference: str, found_as: FoundAs, route: str = "") -> tuple[str, ResolvedLinks]:
        """The target of a redirect, also as outlinks, there with `route`; empty when it is not an http or https URL."""
        target = resolve(url, reference) if reference else None
        if target is None:
            return "", NOTHING
        target += route
        key = self._key(target)
        if key == self._key(url):
            # to itself with a session id, as servers do for visitors without cookies: else it were never captured
            key = url_key(target)
        told = shortened(target)
        line = outlink_line(told, _LABEL[found_as])
        return target, ResolvedLinks(key + _BYTE[found_as], line, ((key, told),))

    def routes(self, urls: Iterable[str]) -> ResolvedLinks:
        """The pages that scripts show by the fragments of normalised URLs, as outlinks."""
        keys = {url: self._key(url) for url in urls if len(url) <= MOST_URL}
        kind, label = _BYTE[FoundAs.FRAGMENT_ROUTE], _LABEL[FoundAs.FRAGMENT_ROUTE]
        lines = [outlink_line(url, label) for url in keys]
        return ResolvedLinks(
            b"".join([key + kind for key in keys.values()]),
            b"".join(lines),
            tuple([(key, url) for url, key in keys.items()]),
        )

    def key(self, url: str) -> bytes:
        """The key by which the tracker knows a normalised URL."""
        return self._key(url)

    def resolve(
        self, base: str, links: Iterable[tuple[str, FoundAs]], anchors: Iterable[str] = (), *, follow: bool
    ) -> ResolvedLinks:
        """The outlinks of a page whose references are seen from `base`; without `follow`, the tracker gets no links.

        `anchors` are the references found as <a href>, and may be uncleaned.
        """
        known = self._known_of(origin_of(base))
        lines: dict[bytes, bytes] = {}
        targets: dict[_LinkTarget, None] = {}
        for href, found_as in links:
            target = known.get(href) or self._meant(known, base, href)
            if target is not _NOWHERE:
                lines[target.key + _BYTE[found_as]] = outlink_line(target.url, _LABEL[found_as])
                if follow or found_as not in _IS_LINK:
                    targets[target] = None
        told = [*lines] if follow else [entry for entry in lines if entry[16] not in _IS_LINK]
        leads = self._anchors(known, base, anchors)
        if follow:
            told += [target.entry for target in leads]
            targets.update(leads)
        return ResolvedLinks(
            b"".join(told), b"".join([*lines.values(), *[target.line for target in leads]]), self._news(targets)
        )

    def _news(self, targets: Iterable[_LinkTarget]) -> tuple[tuple[bytes, str], ...]:
        """Key and text of the URLs that the tracker has not got from here."""
        fresh = [target for target in targets if not target.told]
        for target in fresh:
            target.told = self._in_order
        return tuple([(target.key, target.url) for target in fresh])

    def _anchors(self, known: dict[str, _LinkTarget], base: str, anchors: Iterable[str]) -> dict[_LinkTarget, None]:
        # Whole lists at a time, in C: this is where the links of a page are.
        anchors = [*anchors]
        targets = [*map(known.get, anchors)]
        if None in targets:
            meant, above = self._meant, _Above(base)
            found = [
                target or known.get(above.rooted(href)) or meant(known, base, href)
                for target, href in zip(targets, anchors, strict=True)
            ]
            leads = dict.fromkeys(found)
        else:
            leads = cast("dict[_LinkTarget, None]", dict.fromkeys(targets))
        leads.pop(_NOWHERE, None)
        return leads

    def _meant(self, known: dict[str, _LinkTarget], base: str, raw: str) -> _LinkTarget:
        """The target of a reference that is not known as it stands."""
        rooted = _rooted(base, raw)
        target = known.get(rooted) if rooted else None
        if target is not None:
            return target
        href = cleaned(raw)
        if not href:
            return _NOWHERE
        if len(raw) > MOST_URL or _ODD(raw):
            return self._learn(base, href)
        bare, fragment, _ = href.partition("#")
        target = (known.get(bare) or self._meant(known, base, bare)) if fragment else self._learn(base, href)
        if rooted:
            known[rooted] = target
            self._remembered += 1
        return target

    def _learn(self, base: str, href: str) -> _LinkTarget:
        url = join_plain(directory_of(base), href) or resolve(base, href)
        if url is None:
            return _NOWHERE
        name = url if len(url) <= MOST_URL else url_key(url).hex()
        target = self._by_url.get(name)
        if target is None:
            target = self._by_url[name] = _LinkTarget(url, self._key(url))
            # long ones count for several: what is remembered is bounded in bytes, too
            self._remembered += 1 + (len(name) >> 8)
        return target

    def _known_of(self, origin: str) -> dict[str, _LinkTarget]:
        if self._remembered > _MOST_REMEMBERED:
            self._by_origin.clear()
            self._by_url.clear()
            self._remembered = 0
        return self._by_origin.setdefault(origin, {})


def _rooted(base: str, href: str) -> str | None:
    """A reference as it would be written from the root, joined as text; None when that may have another target.

    Both forms mean the same unless the parser would strip or turn something (`_ODD`), the joined one is a `//host`, or
    the relative one has a scheme.
    """
    up = 0
    if href[:3] == "../":
        up = 3
        while href[up : up + 3] == "../":
            up += 3
    elif href[:1] == "/" or href.startswith(("http://", "https://")):
        return href
    elif ":" in href:
        return None
    above = _above(base, up // 3)
    return above + href[up:] if above and href[up : up + 1] not in _NOT_A_SEGMENT else None


class _Above(dict[str, str]):
    """The paths that `../`, `../../` and so on mean as seen from a page: what most relative references begin with."""

    def __init__(self, base: str) -> None:
        self._base = base

    def __missing__(self, steps: str) -> str:
        count = len(steps) // 3
        path = self[steps] = _above(self._base, count) if steps == "../" * count else ""
        return path

    def rooted(self, href: str) -> str:
        """The result of `_rooted` for a reference that begins so; empty for others."""
        first, step, rest = href.rpartition("../")
        if not step or rest[:1] in _NOT_A_SEGMENT:
            return ""
        above = self[first + step]
        return above + rest if above else ""


@lru_cache(maxsize=64)
def _above(base: str, steps: int) -> str:
    """The path of the directory so many steps above that of `base`; empty where it would make a `//host`."""
    here = directory_of(base)
    path = here[len(origin_of(here)) :]
    if steps:
        # a step above the root stays there
        path = path.rsplit("/", steps + 1)[0] + "/"
    return "" if path[:2] == "//" else path


_ODD = re.compile(r"[\x00-\x20\\]").search
_NOT_A_SEGMENT = frozenset(("", "/", "?", "#", "."))


def join_plain(here: str, href: str) -> str | None:
    """A reference of plain characters as seen from the directory `here`; None for others, and for other origins."""
    origin = origin_of(here)
    if href.startswith(origin + "/"):
        href = href[len(origin) :]
    rooted = href[:1] == "/"
    plain = _PLAIN(href, 1 if rooted else 0)
    if plain is None:
        return None
    up = len(plain[1]) // 3
    if rooted:
        return None if up else origin + href
    if up:
        steps = here.split("/")
        # scheme, nothing, host, …, nothing: a step above the root stays there
        here = "/".join(steps[: max(3, len(steps) - 1 - up)]) + "/"
        href = href[3 * up :]
    return here + href
