"""Every setting of a job: its name, defaults, help and when it may change.

One table serves the command line, the tracker's job row, the workers and `docs/options.md` (a contract test holds the
docs to it). A field is an option exactly when it is annotated with `Option`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_type_hints

from msgspec import UNSET, Struct, structs

from muniment import __version__

__all__ = ["DEFAULT_USER_AGENT", "Command", "DelayRange", "Option", "Settings", "defaults", "options"]

DEFAULT_USER_AGENT = f"muniment/{__version__}"

OnResume = Literal["fixed", "free"]
Command = Literal["crawl", "fetch"]


class Option(Struct, frozen=True):
    """How a setting is spelled on the command line and what the reader is told about it."""

    flags: tuple[str, ...]
    """All spellings, the documented one first; a switch that can be turned off has `--no-…` in `off`."""
    help: str
    metavar: str = ""
    off: str = ""
    on_resume: OnResume = "free"
    """`fixed`: a resumed run must give the same value."""
    live: bool = False
    """`muniment set` may change it while the crawl runs."""
    only: Command | None = None
    """The one command that takes it; both without."""
    fetch: Any = UNSET
    """The default in `fetch`, where it is another."""


class DelayRange(Struct, frozen=True):
    """The gap between request starts to one host, drawn evenly between two bounds, in milliseconds."""

    low: int = 0
    high: int = 0


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of one job; the defaults are the contract's for `crawl`, see `defaults`."""

    seed: str = ""
    """The seed list of a `fetch`, as given: a path, `-` or the URL of a sitemap. Empty in a crawl."""

    # Output
    out: Annotated[str, Option(("--out", "-o"), "Output directory.", "DIR")] = "muniment-out"
    run_id: Annotated[str, Option(("--run-id",), "Put the output one level deeper, in DIR/ID.", "ID")] = ""
    prefix: Annotated[str, Option(("--prefix",), "How WARC file names begin.", "NAME")] = "muniment"
    warc_size: Annotated[int, Option(("--warc-size",), "Begin a new WARC file at this size.", "BYTES")] = 1 << 30
    min_free: Annotated[
        int | None,
        Option(
            ("--min-free",),
            "Pause while less than this is free on the disk (default: the smaller of 1 GiB and 5 %).",
            "BYTES",
            live=True,
        ),
    ] = None
    state: Annotated[
        str | None, Option(("--state",), "Where the tracker lies (default: the output directory).", "DIR")
    ] = None
    database: Annotated[
        str | None, Option(("--database",), "Use this PostgreSQL tracker instead of SQLite.", "URL")
    ] = None

    # Start URLs
    input: Annotated[
        str | None, Option(("--input", "-i"), "Read start URLs from a file; - is standard input.", "FILE", only="crawl")
    ] = None

    # The seed list
    seed_format: Annotated[
        Literal["lines", "jsonl", "parquet", "sitemap"] | None,
        Option(
            ("--from",),
            "What the list is (default: by its name).",
            "lines|jsonl|parquet|sitemap",
            on_resume="fixed",
            only="fetch",
        ),
    ] = None
    shard: Annotated[
        int, Option(("--shard",), "Fetch this part of the list, counted from 0.", "I", on_resume="fixed", only="fetch")
    ] = 0
    shards: Annotated[
        int, Option(("--shards",), "Divide the list into N parts.", "N", on_resume="fixed", only="fetch")
    ] = 1
    redirects: Annotated[
        Literal["on", "off"], Option(("--redirects",), "Follow redirects.", "on|off", on_resume="fixed", only="fetch")
    ] = "on"
    store_unchanged: Annotated[
        bool,
        Option(("--store-unchanged",), "Store every body, also one that is known already.", only="fetch"),
    ] = False
    reorder: Annotated[
        Literal["on", "off"], Option(("--reorder",), "Spread the list over hosts.", "on|off", only="fetch")
    ] = "on"

    # Scope
    page_only: Annotated[
        bool,
        Option(
            ("--page-only",), "Only the start URLs and what they need to be shown.", on_resume="fixed", only="crawl"
        ),
    ] = False
    level: Annotated[
        int | None,
        Option(("--level",), "Follow links at most N hops (default: no limit).", "N", on_resume="fixed", only="crawl"),
    ] = None
    offsite_links: Annotated[
        bool,
        Option(
            ("--offsite-links",),
            "Capture pages of other sites that are one link away.",
            off="--no-offsite-links",
            on_resume="fixed",
            only="crawl",
        ),
    ] = True
    no_parent: Annotated[
        bool, Option(("--no-parent",), "Keep to the directory of the start URL.", on_resume="fixed", only="crawl")
    ] = False
    include: Annotated[
        tuple[str, ...],
        Option(
            ("--include",),
            "Take only pages whose URL matches; may be repeated. Requisites are exempt.",
            "RE",
            on_resume="fixed",
            only="crawl",
        ),
    ] = ()
    ignore: Annotated[
        tuple[str, ...], Option(("--ignore",), "Leave out every URL that matches; may be repeated.", "RE", only="crawl")
    ] = ()
    ignore_sets: Annotated[
        tuple[str, ...],
        Option(("--ignore-sets",), "Use these built-in sets too; see `muniment ignores list`.", "A,B", only="crawl"),
    ] = ()
    no_global_ignores: Annotated[
        bool, Option(("--no-global-ignores",), "Leave the built-in global set out.", only="crawl")
    ] = False
    import_ignores: Annotated[
        tuple[str, ...],
        Option(("--import-ignores",), "Read patterns from a file of ArchiveBot or grab-site.", "FILE", only="crawl"),
    ] = ()
    sitemaps: Annotated[
        bool,
        Option(
            ("--sitemaps",),
            "Read sitemaps: those that robots.txt names, and /sitemap.xml.",
            off="--no-sitemaps",
            on_resume="fixed",
            only="crawl",
        ),
    ] = True

    # Pace
    per_host: Annotated[
        int, Option(("--per-host", "--concurrency"), "Connections to one host.", "N", live=True, fetch=8)
    ] = 6
    inflight: Annotated[
        int, Option(("--inflight",), "Most requests in flight over all hosts.", "N", live=True, fetch=2000)
    ] = 256
    min_inflight: Annotated[
        int, Option(("--min-inflight",), "Never fewer than this, however many hosts fall silent at once.", "N")
    ] = 32
    start_inflight: Annotated[int, Option(("--start-inflight",), "How many to begin with.", "N")] = 64
    delay: Annotated[
        DelayRange,
        Option(("--delay",), "Gap between request starts to a host, in milliseconds.", "MS|MIN-MAX", live=True),
    ] = DelayRange()
    workers: Annotated[
        int | None, Option(("--workers",), "Most worker processes (default: the number of CPUs).", "N", live=True)
    ] = None
    robots: Annotated[bool, Option(("--robots",), "Obey robots.txt.", off="--no-robots", fetch=False)] = True
    nofollow: Annotated[
        bool, Option(("--nofollow",), "Do not follow the links of pages that say nofollow to robots.")
    ] = False
    noarchive: Annotated[bool, Option(("--noarchive",), "Do not keep pages that say noarchive to robots.")] = False

    # Failure and limits
    tries: Annotated[
        int,
        Option(
            ("--tries",),
            "All tries of a page: network faults, 408, 425, 429 and 5xx except 501 and 505.",
            "N",
            live=True,
        ),
    ] = 3
    rounds: Annotated[
        int,
        Option(
            ("--rounds",),
            "More rounds, when the rest is done, for pages whose tries are used up by failures that may pass.",
            "N",
        ),
    ] = 2
    give_up_after: Annotated[
        float,
        Option(
            ("--give-up-after",),
            "Seconds to wait for hosts that had answered when nothing else is due; the run then stops, resumable.",
            "S",
            live=True,
        ),
    ] = 43_200.0
    connect_timeout: Annotated[
        float, Option(("--connect-timeout",), "Seconds to connect, TLS included.", "S", live=True, fetch=5.0)
    ] = 20.0
    timeout: Annotated[
        float, Option(("--timeout",), "Seconds of silence before a try is given up.", "S", live=True, fetch=20.0)
    ] = 60.0
    max_fetch_time: Annotated[
        float,
        Option(("--max-fetch-time",), "Most seconds of one exchange; what came is kept (marked).", "S", live=True),
    ] = 3_600.0
    max_redirects: Annotated[int, Option(("--max-redirects",), "Longest chain of redirects.", "N")] = 20
    max_body: Annotated[int | None, Option(("--max-body",), "Cut bodies at this length (marked).", "BYTES")] = None
    max_pages: Annotated[int | None, Option(("--max-pages",), "Stop after N captured pages.", "N", live=True)] = None
    max_bytes: Annotated[int | None, Option(("--max-bytes",), "Stop after this much payload.", "BYTES", live=True)] = (
        None
    )
    max_time: Annotated[float | None, Option(("--max-time",), "Stop this run after S seconds.", "S", live=True)] = None

    # The request
    contact: Annotated[
        str,
        Option(
            ("--contact",),
            "A page about you, or your mail address: for the agent and warcinfo (default: MUNIMENT_CONTACT).",
            "URL|MAIL",
        ),
    ] = ""
    user_agent: Annotated[
        str,
        Option(
            ("--user-agent",),
            "User-Agent of every request: a text, or chrome, firefox, safari, mobile-chrome, mobile-safari.",
            "TEXT|NAME",
        ),
    ] = DEFAULT_USER_AGENT
    header: Annotated[
        tuple[str, ...],
        Option(
            ("--header",),
            "An extra request header, for the hosts of start URLs; HOST=NAME: VALUE is for one host, *=NAME: VALUE for "
            "all. @FILE reads headers from a file. May be repeated.",
            "'[HOST=]NAME: VALUE'",
        ),
    ] = ()
    referer: Annotated[
        bool,
        Option(("--referer",), "Send Referer as browsers do.", off="--no-referer"),
    ] = True
    cookies: Annotated[str | None, Option(("--cookies",), "Begin with the cookies of this Netscape file.", "FILE")] = (
        None
    )
    auth_file: Annotated[
        str | None, Option(("--auth-file",), "Accounts of hosts and proxies, in netrc format.", "FILE")
    ] = None
    proxy: Annotated[
        tuple[str, ...],
        Option(
            ("--proxy",),
            "Go through this proxy: http://, socks4://, socks5:// or socks5h://. HOST=URL and HOST=direct are for "
            "hosts that match, as *.onion=URL; may be repeated.",
            "[HOST=]URL",
        ),
    ] = ()
    insecure: Annotated[bool, Option(("--insecure",), "Do not verify TLS certificates.")] = False
    http_compression: Annotated[bool, Option(("--http-compression",), "Ask for compressed bodies.")] = False
    mode: Annotated[
        Literal["fast", "polite"],
        Option(("--mode",), "Headers of a request: the few that matter, or those of a browser.", "fast|polite"),
    ] = "fast"
    allow_private: Annotated[bool, Option(("--allow-private",), "Allow private, loopback and link-local targets.")] = (
        False
    )


def options(command: Command | None = None) -> Iterator[tuple[str, Any, Any, Option]]:
    """Every option, or those of a command, as (field name, type, default, Option), in the order of the table."""
    hints = get_type_hints(Settings, include_extras=True)
    for field in structs.fields(Settings):
        kind, *_, option = get_args(hints[field.name]) or (str, None)
        if isinstance(option, Option) and (command is None or option.only in (None, command)):
            other = command == "fetch" and option.fetch is not UNSET
            yield field.name, kind, option.fetch if other else field.default, option


def defaults(command: Command) -> Settings:
    """The settings of a command that was given no options."""
    return Settings(**{name: default for name, _, default, _ in options(command)})
