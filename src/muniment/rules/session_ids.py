"""Session ids: what a URL is once the number of a visit is taken out of it.

Servers that track visitors without cookies write a number into every link, another one for each visit, so that one
page has any number of URLs. A name that also means other things (`sid`, `s`) counts only with a value that looks drawn
by lot: an archive must not take two pages for one.
"""

from __future__ import annotations

import re

from muniment.model.url import url_key

__all__ = ["page_key", "without_session"]

_IN_PATH = re.compile(
    r"""
      ;(?:jsessionid|phpsessid|sessionid|sid|session-id)=[A-Za-z0-9.!_~*-]{8,}+   # Java, and others like it
    | /\((?:[A-Z]\([A-Za-z0-9_-]{20,}+\))+\)(?=/)                                 # ASP.NET: /(S(…))/
    | /\([a-z0-5]{24}\)(?=/)                                                      # ASP.NET 1
    """,
    re.VERBOSE | re.IGNORECASE,
).sub
_IN_QUERY = re.compile(
    r"""
    (?<=[?&])(?:
      (?:phpsessid|jsessionid|aspsessionid[a-z]{8}|(?:php)?session_?id|oscsid|zenid|xtcsid|cosid)
          =[A-Za-z0-9,.!_~*%-]{16,}+
    | cfid=[0-9a-f-]{1,40}+&cftoken=[0-9a-f-]{6,}+
    | (?:sid|s|sess|sessid|session|sesskey)=(?:[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-z]{26})
    )(?:&|\Z)
    """,
    re.VERBOSE | re.IGNORECASE,
).sub


def page_key(url: str) -> bytes:
    """The key by which the page of a normalised URL is known: the same for any session."""
    return url_key(without_session(url))


def without_session(url: str) -> str:
    """A normalised URL without its session ids; the URL itself without session ids."""
    if "#" in url:
        document, mark, route = url.partition("#")
        return without_session(document) + mark + route
    if ";" in url or "/(" in url:
        path, mark, query = url.partition("?")
        url = _IN_PATH("", path) + mark + query
    cut = url.find("?")
    if cut < 0 or len(url) - cut < _SHORTEST:
        return url
    kept = _IN_QUERY("", url[cut:])
    if len(kept) == len(url) - cut:
        return url
    return url[:cut] + kept.removesuffix("&").removesuffix("?")


_SHORTEST = len("?cfid=1&cftoken=123456")
"""Most queries are shorter than any with a session id, and need no search."""
