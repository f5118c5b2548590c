"""Every setting of a job: its name, defaults, help and when it may change.

One table serves the command line, the tracker's job row, the workers and `docs/options.md` (a contract test holds the
docs to it). A field is an option exactly when it is annotated with `Option`.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, get_args, get_type_hints

from msgspec import UNSET, Struct, structs

from muniment import __version__
from muniment.settings.guards import GuardSettings
from muniment.settings.live_plane import LOG_KEEP, REAP_AFTER_S, ROLES_HELP
from muniment.settings.option import Command, DelayRange, Option, OptionKind

__all__ = [
    "DEFAULT_USER_AGENT", "Command", "DelayRange", "Option", "OptionKind", "Settings", "defaults", "options",
]  # fmt: skip

DEFAULT_USER_AGENT = f"muniment/{__version__}"


class Settings(GuardSettings, frozen=True, kw_only=True):
    """The settings of one job; the defaults are those of `crawl`, see `defaults`."""

    seed: str = ""
    """The seed list of a `fetch`, as given: a path, `-` or the URL of a sitemap. Empty in a crawl."""
    start_list: str = ""  # in a crawl, where its start URLs are listed
    out: Annotated[str, Option(("--out", "-o"), "Output directory.", "DIR", group="Output", kind="machine")] = (
        "muniment-out"
    )
    run_id: Annotated[
        str, Option(("--run-id",), "Put the output one level deeper, in DIR/ID.", "ID", kind="machine")
    ] = ""
    prefix: Annotated[str, Option(("--prefix",), "Prefix of the names of WARC files.", "NAME", kind="machine")] = (
        "muniment"
    )
    warc_size: Annotated[
        int, Option(("--warc-size",), "Start a new WARC file at this size.", "BYTES", kind="machine")
    ] = 1 << 30
    min_free: Annotated[
        int | None,
        Option(
            ("--min-free",),
            "Pause while less than this is free on the disk (default: the smaller of 1 GiB and 5 % of the filesystem).",
            "BYTES",
            live=True,
            kind="machine",
        ),
    ] = None
    state: Annotated[
        str | None,
        Option(
            ("--state",),
            "Directory of the SQLite tracker (default: the output directory).",
            "DIR",
            group="Tracker",
            kind="machine",
        ),
    ] = None
    database: Annotated[
        str | None, Option(("--database",), "Use this PostgreSQL tracker instead of SQLite.", "URL", kind="machine")
    ] = None

    input: Annotated[
        str | None,
        Option(
            ("--input", "-i"),
            "Read start URLs from a file, one a line; - is standard input.",
            "FILE",
            only="crawl",
            group="Start URLs",
            kind="file",
        ),
    ] = None

    seed_format: Annotated[
        str | None,
        Option(
            ("--from",),
            "Format of the list (default: by its name).",
            "FORMAT",
            on_resume="fixed",
            only="fetch",
            group="Seed list",
            kind="file",
        ),
    ] = None
    shard: Annotated[
        int,
        Option(
            ("--shard",),
            "Fetch only part I of the list, counted from 0; auto: the task of an Indexed Job or a Slurm array.",
            "I|auto",
            on_resume="fixed",
            only="fetch",
            kind="file",
        ),
    ] = 0
    shards: Annotated[
        int, Option(("--shards",), "Divide the list into N parts.", "N", on_resume="fixed", only="fetch", kind="file")
    ] = 1
    redirects: Annotated[
        Literal["on", "off"], Option(("--redirects",), "Follow redirects.", "on|off", on_resume="fixed", only="fetch")
    ] = "on"
    store_unchanged: Annotated[
        bool,
        Option(("--store-unchanged",), "Store every body, even one that has not changed.", only="fetch"),
    ] = False
    reorder: Annotated[
        Literal["on", "off"], Option(("--reorder",), "Spread the list over hosts.", "on|off", only="fetch")
    ] = "on"

    page_only: Annotated[
        bool,
        Option(
            ("--page-only",),
            "Capture only the start URLs and their requisites: images, styles, scripts.",
            on_resume="fixed",
            only="crawl",
            group="Scope",
        ),
    ] = False
    level: Annotated[
        int | None,
        Option(("--level",), "Follow links up to N hops (default: no limit).", "N", on_resume="fixed", only="crawl"),
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
            "Capture only pages whose URL matches; may be repeated. Requisites are exempt.",
            "RE",
            on_resume="fixed",
            only="crawl",
        ),
    ] = ()
    ignore: Annotated[
        tuple[str, ...], Option(("--ignore",), "Skip every URL that matches; may be repeated.", "RE", only="crawl")
    ] = ()
    ignore_sets: Annotated[
        tuple[str, ...],
        Option(("--ignore-sets",), "Add these built-in sets; see `muniment ignores list`.", "A,B", only="crawl"),
    ] = ()
    no_global_ignores: Annotated[
        bool, Option(("--no-global-ignores",), "Do not use the built-in set `global`.", only="crawl")
    ] = False
    import_ignores: Annotated[
        tuple[str, ...],
        Option(
            ("--import-ignores",),
            "Skip what a pattern file of ArchiveBot or grab-site names; may be repeated.",
            "FILE",
            only="crawl",
            kind="file",
        ),
    ] = ()
    sitemaps: Annotated[
        bool,
        Option(
            ("--sitemaps",),
            "Read the sitemaps that robots.txt names, and /sitemap.xml.",
            off="--no-sitemaps",
            on_resume="fixed",
            only="crawl",
        ),
    ] = True

    per_host: Annotated[
        int,
        Option(
            ("--per-host", "--concurrency"),
            "Maximum connections to one host.",
            "N",
            live=True,
            fetch=8,
            group="Speed and politeness",
        ),
    ] = 6
    inflight: Annotated[
        int,
        Option(
            ("--inflight",), "Maximum requests in flight over all hosts.", "N", live=True, fetch=2000, kind="machine"
        ),
    ] = 256
    min_inflight: Annotated[
        int,
        Option(("--min-inflight",), "Minimum of the limit in flight, which drops when many hosts fall silent.", "N"),
    ] = 32
    start_inflight: Annotated[int, Option(("--start-inflight",), "Limit in flight at the start of a run.", "N")] = 64
    delay: Annotated[
        DelayRange,
        Option(("--delay",), "Gap between two request starts to one host, in milliseconds.", "MS|MIN-MAX", live=True),
    ] = DelayRange()
    workers: Annotated[
        int | None,
        Option(
            ("--workers",), "Maximum worker processes (default: the number of CPUs).", "N", live=True, kind="machine"
        ),
    ] = None
    robots: Annotated[bool, Option(("--robots",), "Obey robots.txt.", off="--no-robots", fetch=False)] = True
    nofollow: Annotated[
        bool, Option(("--nofollow",), "Do not follow links of pages that are marked nofollow for robots.")
    ] = False
    noarchive: Annotated[bool, Option(("--noarchive",), "Do not keep pages that are marked noarchive for robots.")] = (
        False
    )

    tries: Annotated[
        int,
        Option(
            ("--tries",),
            "Maximum tries of a page after network faults, 408, 425, 429 and 5xx except 501 and 505.",
            "N",
            live=True,
            group="Tries and limits",
        ),
    ] = 3
    rounds: Annotated[
        int,
        Option(
            ("--rounds",),
            "More rounds at the end of the job for pages that failed and may work later.",
            "N",
        ),
    ] = 2
    give_up_after: Annotated[
        float,
        Option(
            ("--give-up-after",),
            "Seconds to wait for hosts that stopped answering when nothing else is due; then the run stops, resumable.",
            "S",
            live=True,
        ),
    ] = 43_200.0
    connect_timeout: Annotated[
        float, Option(("--connect-timeout",), "Seconds to connect, including TLS.", "S", live=True, fetch=5.0)
    ] = 20.0
    timeout: Annotated[
        float, Option(("--timeout",), "Seconds without data before a try fails.", "S", live=True, fetch=20.0)
    ] = 60.0
    max_fetch_time: Annotated[
        float,
        Option(
            ("--max-fetch-time",),
            "Maximum seconds of one exchange; a longer one is cut, marked and kept.",
            "S",
            live=True,
        ),
    ] = 3_600.0
    max_redirects: Annotated[int, Option(("--max-redirects",), "Maximum redirects in a chain.", "N")] = 20
    max_body: Annotated[
        int | None, Option(("--max-body",), "Cut bodies at this size; they are marked and kept.", "BYTES")
    ] = None
    max_pages: Annotated[int | None, Option(("--max-pages",), "Stop after N captured pages.", "N", live=True)] = None
    max_bytes: Annotated[int | None, Option(("--max-bytes",), "Stop after this much payload.", "BYTES", live=True)] = (
        None
    )
    max_time: Annotated[
        float | None, Option(("--max-time",), "Stop this run after S seconds.", "S", live=True, kind="run")
    ] = None

    contact: Annotated[
        str,
        Option(
            ("--contact",),
            "Web page or mail address of the operator, for User-Agent and warcinfo (default: MUNIMENT_CONTACT).",
            "URL|MAIL",
            group="Requests",
        ),
    ] = ""
    user_agent: Annotated[
        str,
        Option(
            ("--user-agent",),
            "User-Agent of every request: a text, or the name chrome, firefox, safari, mobile-chrome or mobile-safari.",
            "TEXT|NAME",
        ),
    ] = DEFAULT_USER_AGENT
    header: Annotated[
        tuple[str, ...],
        Option(
            ("--header",),
            "Add a request header for the hosts of start URLs; HOST=NAME: VALUE is for one host, *=NAME: VALUE for "
            "all. @FILE reads headers from a file. May be repeated.",
            "'[HOST=]NAME: VALUE'",
        ),
    ] = ()
    referer: Annotated[
        bool,
        Option(("--referer",), "Send Referer as browsers do.", off="--no-referer"),
    ] = True
    mode: Annotated[
        Literal["fast", "polite"],
        Option(
            ("--mode",),
            "Request headers: only the necessary ones (fast), or those of a browser (polite).",
            "fast|polite",
        ),
    ] = "fast"
    http_compression: Annotated[bool, Option(("--http-compression",), "Ask servers for compressed bodies.")] = False
    cookies: Annotated[
        str | None,
        Option(("--cookies",), "Start with the cookies of this file in Netscape format.", "FILE", kind="file"),
    ] = None
    auth_file: Annotated[
        str | None,
        Option(
            ("--auth-file",),
            "Read accounts of hosts and proxies from this file in netrc format.",
            "FILE",
            kind="machine",
        ),
    ] = None
    redis: Annotated[
        str | None,
        Option(
            ("--redis",),
            "Show and steer the job over this Redis, in the layout of ArchiveBot (default: MUNIMENT_REDIS).",
            "URL",
            group="Live plane",
            kind="machine",
        ),
    ] = None
    redis_roles: Annotated[
        str,
        Option(("--redis-roles",), ROLES_HELP, "LIST", kind="machine"),
    ] = "all"
    redis_log_keep: Annotated[
        int, Option(("--redis-log-keep",), "Log entries of a running job that stay in Redis.", "N", kind="machine")
    ] = LOG_KEEP
    reap_after: Annotated[
        float,
        Option(("--reap-after",), "Seconds without a heartbeat until a job has failed; 0: never.", "S", kind="machine"),
    ] = REAP_AFTER_S
    announce: Annotated[
        Literal["queue", "feed", "off"],
        Option(("--announce",), "Announce the job there: in the queue of posts, or the feed.", "WAY", kind="machine"),
    ] = "queue"
    explanation: Annotated[
        str | None, Option(("--explanation",), "Why the job runs, for those who see it.", "TEXT", kind="run")
    ] = None
    ignore_reports: Annotated[
        Literal["on", "off"],
        Option(("--ignore-reports",), "Tell of each ignored URL in the log.", "on|off", live=True),
    ] = "off"

    proxy: Annotated[
        tuple[str, ...],
        Option(
            ("--proxy",),
            "Use this proxy: http://, socks4://, socks5:// or socks5h://. HOST=URL and HOST=direct are for hosts that "
            "match, such as *.onion=URL. May be repeated.",
            "[HOST=]URL",
            group="Network",
            kind="machine",
        ),
    ] = ()
    insecure: Annotated[
        bool, Option(("--insecure",), "Do not verify TLS certificates, and speak TLS 1.0 and later.", kind="machine")
    ] = False
    allow_private: Annotated[
        bool, Option(("--allow-private",), "Allow private, loopback and link-local addresses.", kind="machine")
    ] = False


@cache
def options(command: Command | None = None, table: type[Struct] = Settings) -> tuple[tuple[str, Any, Any, Option], ...]:
    """Every option, or those of a command, as (field name, type, default, Option), in the order of the table."""
    hints, group, found = get_type_hints(table, include_extras=True), "", []
    for field in sorted(structs.fields(table), key=lambda field: field.name in GuardSettings.__struct_fields__):
        kind, *_, option = get_args(hints[field.name]) or (str, None)
        if isinstance(option, Option):
            group = option.group or group
            if command is None or option.only in (None, command):
                default = option.fetch if command == "fetch" and option.fetch is not UNSET else field.default
                found.append((field.name, kind, default, structs.replace(option, group=group)))
    return tuple(found)


@cache
def defaults(command: Command) -> Settings:
    """The settings of a command that was given no options."""
    return Settings(**{name: default for name, _, default, _ in options(command)})
