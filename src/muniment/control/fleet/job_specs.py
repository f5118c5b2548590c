"""Orders of jobs: checked, and made into what the tracker keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import ip_address

from msgspec import Struct, structs

from muniment.control.fleet.values import settings_of_values
from muniment.errors import PrivateTargetError, UsageError
from muniment.fetch.address_policy import address_class
from muniment.http.netscape import read_cookies
from muniment.model.cookie import Cookie
from muniment.model.job import JobTerms
from muniment.model.mask import masked_url
from muniment.model.network.jobs import GivenCookie, JobSpec
from muniment.model.url import MOST_URL, account_of, did_you_mean, host_of, normalise, normalise_page
from muniment.rules.ignore_sets import chosen
from muniment.rules.job_rules import Rules
from muniment.settings.option_table import Settings

__all__ = ["CheckedSpec", "check_line", "check_public", "checked_spec", "checked_terms", "checked_url"]

LIST = "list"
"""`Settings.seed` of a job whose lines come over the network."""
_MOST_NAME, _MOST_EXPLANATION, _MOST_SCRIPT = 200, 10_000, 1 << 20
_LARGEST = 1_000_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NOT_IN_A_COOKIE = re.compile(r"[\x00-\x1f\x7f\u0100-\U0010ffff]")
_MOST_COOKIE, _MOST_COOKIE_KEY = 65_536, 2_000


class CheckedSpec(Struct, frozen=True):
    """A job that can be made."""

    name: str
    settings: Settings
    urls: tuple[str, ...]
    """Start URLs, normalised."""
    rules: Rules
    cookies: list[Cookie]
    terms: JobTerms


def checked_spec(spec: JobSpec, now: int, *, allow_private: bool) -> CheckedSpec:
    """A job as specified. UsageError says what makes no sense, PrivateTargetError names a target that is not public."""
    settings = settings_of_values(spec.settings, "fetch" if spec.is_list else "crawl")
    routes = settings.engine != "http"
    urls = tuple(dict.fromkeys(checked_url(url, routes=routes) for url in spec.urls))
    if spec.is_list and urls:
        raise UsageError("a job with a list has no start URLs: send them as its lines")
    if not urls and not spec.is_list:
        raise UsageError("no start URL given")
    if not allow_private:
        check_public(urls)
    names = (*settings.ignore_sets, *spec.ignore_sets)
    sets = chosen(names, with_global=not spec.is_list and not settings.no_global_ignores)
    ignore = tuple(dict.fromkeys((*settings.ignore, *spec.ignores)))
    # of a machine, a job names nothing
    if len(spec.custom_js) > _MOST_SCRIPT:
        raise UsageError(f"custom_js is longer than {_MOST_SCRIPT:,} characters")
    settings = structs.replace(
        settings, out="", ignore=ignore, seed=LIST if spec.is_list else "", custom_js=spec.custom_js or None
    )
    return CheckedSpec(
        _name(spec, urls),
        settings,
        urls,
        Rules(settings.include, ignore, sets, tuple(spec.rules)),
        _cookies(spec.cookies, now),
        checked_terms(JobTerms(
            nice=spec.nice, concurrency=spec.max_slots, tags=frozenset(spec.tags), explanation=spec.explanation
        )),
    )  # fmt: skip


def checked_terms(terms: JobTerms) -> JobTerms:
    """Terms that a tracker can keep; raises UsageError for others."""
    for name in ("nice", "concurrency", "drip"):
        value = getattr(terms, name)
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise UsageError(f"{_SHOWN.get(name, name)} must be between {-_LARGEST:,} and {_LARGEST:,}")
    if isinstance(terms.concurrency, int) and terms.concurrency < 0:
        raise UsageError("max_slots must be at least 0")
    if isinstance(terms.explanation, str):
        check_line(terms.explanation, "the explanation", _MOST_EXPLANATION)
    return terms


_SHOWN = {"concurrency": "max_slots"}


def _name(spec: JobSpec, urls: Sequence[str]) -> str:
    check_line(spec.name, "the name", _MOST_NAME)
    return spec.name or (host_of(urls[0]) if urls else LIST)


def check_line(text: str, what: str, most: int) -> None:
    """Raise UsageError for text that is longer than `most` characters or not one line."""
    if len(text) > most:
        raise UsageError(f"{what} is longer than {most:,} characters")
    if _CONTROL.search(text):
        raise UsageError(f"{what} contains a control character; write one line of text")


def checked_url(text: str, *, routes: bool = False) -> str:
    """A start URL in normal form, with `routes` for a browser; raises UsageError, which shows no password."""
    url = normalise_page(text) if routes else normalise(text)
    shown = masked_url(text) if "@" in text else text[:200]
    if url is None:
        raise UsageError(f"{shown!r} is not an http or https URL{did_you_mean(text) if '@' not in text else ''}")
    if len(url) > MOST_URL:
        raise UsageError(f"{url[:60]}… has {len(url)} characters; the maximum is {MOST_URL}")
    if account_of(text) is not None:
        raise UsageError(
            f"the URL {shown!r} has an account, which every reader of the tracker would see: give it to "
            "`muniment pipeline --auth-file`"
        )
    return url


def check_public(urls: Iterable[str]) -> None:
    """Raise PrivateTargetError for a URL that names a host without a public address."""
    for url in urls:
        host = host_of(url)
        if _is_private(host):
            raise PrivateTargetError(
                f"{host} is not a public address: to archive it, start the server and a pipeline with --allow-private"
            )


def _is_private(host: str) -> bool:
    name = host.rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return address_class(str(ip_address(name.strip("[]")))) != "public"
    except ValueError:
        return False  # a name: its pipeline looks at the address that it connects to


def _cookies(given: Sequence[GivenCookie], now: int) -> list[Cookie]:
    lines = []
    for one in given:
        texts = one.domain, one.path, one.name, one.value
        if any(_NOT_IN_A_COOKIE.search(text) for text in texts):
            raise UsageError("a cookie contains a control character, or one that is not Latin-1")
        if len(one.domain + one.path + one.name) > _MOST_COOKIE_KEY or len(one.value) > _MOST_COOKIE:
            raise UsageError(f"a cookie of {one.domain[:60]!r} is too long: the maximum is {_MOST_COOKIE:,} characters")
        below, secure = (str(flag).upper() for flag in (not one.host_only, one.secure))
        mark = "#HttpOnly_" if one.http_only else ""
        fields = mark + one.domain, below, one.path, secure, str(one.expires_at), one.name, one.value
        lines.append("\t".join(fields))
    return read_cookies("\n".join(lines), "of the job", now * 1000)
