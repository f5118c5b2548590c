"""Include and ignore patterns: Python syntax, run as one RE2 set where RE2 means the same, else one by one.

RE2 decides 200 patterns in the time that one takes (design 4.7). A pattern with look-around or a back-reference runs
in the `regex` module under a time limit. One that is neither is refused when it is given.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import re2

from muniment.errors import UsageError
from muniment.model.url import host_of

__all__ = ["Patterns", "expand"]

_SLOW_LIMIT_S = 0.05
# RE2 reads these otherwise than Python's `re`, so a pattern that holds one takes the slow way:
# look-around, back-references, conditionals, atomic groups, possessive quantifiers, \Z (RE2: \z), {,3} (RE2: as text).
_PYTHON_ONLY = re.compile(r"\(\?(?:[=!>]|<[=!]|P=|\()|\\[1-9Z]|[*+?}]\+|\{,")
# To Python [[:alpha:]] is a set of brackets and letters, to both other engines a class: nobody means the former.
_POSIX_CLASS = re.compile(r"\[[^]]*\[:\^?\w+:\]")


def expand(pattern: str, start_urls: Sequence[str]) -> list[str]:
    """The pattern for each start URL: `{primary_url}` and `{primary_netloc}` stand for that URL and its host."""
    if "{primary_" not in pattern:
        return [pattern]
    made = (
        pattern.replace("{primary_url}", re.escape(url)).replace("{primary_netloc}", re.escape(host_of(url)))
        for url in start_urls
    )
    return list(dict.fromkeys(made))


class Patterns:
    """Patterns that are searched in normalised URLs."""

    def __init__(self, patterns: Iterable[str], told: Mapping[str, str] | None = None) -> None:
        """Compile; raises UsageError with one line for the first pattern that is no regular expression.

        `told` says how a pattern that matched is named, when not by itself.
        """
        self._told = told or {}
        self._fast: Any = re2.Set.SearchSet(_quiet())
        self._fast_names: list[str] = []
        self._slow: list[tuple[str, Any]] = []
        for pattern in patterns:
            self._add(pattern)
        if self._fast_names:
            self._compile_fast()

    def __bool__(self) -> bool:
        return bool(self._fast_names or self._slow)

    def _compile_fast(self) -> None:
        try:
            self._fast.Compile()
        except re2.error:
            raise UsageError(
                "the patterns are too large together; counted repetitions such as .{0,900} cost most"
            ) from None

    def _add(self, pattern: str) -> None:
        if not pattern:
            raise UsageError("a pattern is empty and would match every URL (an unset variable in the command?)")
        try:
            with warnings.catch_warnings(action="ignore", category=FutureWarning):
                re.compile(pattern.encode().decode())
        except (re.error, OverflowError, RecursionError, UnicodeError) as error:
            raise UsageError(f"the pattern {pattern!r} is not a regular expression: {error}") from None
        if _POSIX_CLASS.search(pattern):
            raise UsageError(
                f"the pattern {pattern!r} has a POSIX class, which Python does not support; write [a-zA-Z] instead"
            )
        if not _PYTHON_ONLY.search(pattern):
            try:
                self._fast.Add(pattern)
            except re2.error:
                pass
            else:
                self._fast_names.append(self._told.get(pattern, pattern))
                return
        self._slow.append((self._told.get(pattern, pattern), _compile_slow(pattern)))

    @property
    def slow(self) -> list[str]:
        """The patterns that RE2 cannot run, as they are told."""
        return [name for name, _ in self._slow]

    def match(self, url: str) -> str | None:
        """The first pattern, in no particular order, that is found in the URL; None when there is none."""
        return next(self.matches(url), None)

    def matches(self, url: str) -> Iterator[str]:
        """Every pattern that is found in the URL, those that RE2 runs first."""
        if self._fast_names:
            for at in sorted(self._fast.Match(url) or ()):
                yield self._fast_names[at]
        for name, compiled in self._slow:
            try:
                if compiled.search(url, timeout=_SLOW_LIMIT_S):
                    yield name
            except TimeoutError:
                continue


def _compile_slow(pattern: str) -> Any:
    import regex  # noqa: PLC0415  (a tenth of a second to import, and few jobs need it)

    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise UsageError(f"the pattern {pattern!r} cannot be used: {error}") from None


def _quiet() -> re2.Options:
    made = re2.Options()
    made.log_errors = False
    return made
