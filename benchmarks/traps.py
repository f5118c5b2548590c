"""What the built-in ignore sets save on a documentation tree whose every page leads into traps.

The tree is Debian's python3-doc; the traps are `tests.support.trap_site`'s, which never end, so the crawl without
sets is cut by `--max-pages`. Prints a Markdown table.

Usage: python benchmarks/traps.py [--max-pages N]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
from tests.support.trap_site import TrapSite

DOCS = Path("/usr/share/doc/python3.11/html")
RUNS = {
    "none (`--no-global-ignores`)": ("--no-global-ignores",),
    "`global` (the default)": (),
    "`global,mediawiki`": ("--ignore-sets", "mediawiki"),
    "`global,mediawiki,phpbb,woocommerce,calendar`": ("--ignore-sets", "mediawiki,phpbb,woocommerce,calendar"),
    "the same and `loops`": ("--ignore-sets", "mediawiki,phpbb,woocommerce,calendar,loops"),
}


def crawl(options: tuple[str, ...], most: int) -> str:
    """One crawl of the site: a row of the table."""
    with tempfile.TemporaryDirectory() as directory, TrapSite(DOCS) as site:
        command = [*(sys.executable, "-m", "muniment", "crawl", site.url, "-o", directory), "--quiet"]
        command += ["--no-offsite-links", "--guards", "none", "--max-pages", str(most)]
        done = subprocess.run([*command, *options], check=False)
        captured = duckdb.read_parquet(f"{directory}/captures.parquet").filter("status = 200").select("url")
        urls = [url for (url,) in captured.fetchall()]
        wanted = sum(is_wanted(site, url) for url in urls)
    ended = "finished" if done.returncode == 0 else f"cut at {most} pages"
    return f"{wanted} | {len(urls) - wanted} | {ended} |"


def is_wanted(site: TrapSite, url: str) -> bool:
    """Whether a URL is part of the documentation or the forum, and no trap."""
    split = urlsplit(re.sub(r"&sid=[0-9a-f]{32}", "", url))  # no part of a page (decision 0031)
    path = split.path + (f"?{split.query}" if split.query else "")
    return path in site.forum or (DOCS / split.path.lstrip("/")).exists()


def main() -> None:
    parser = argparse.ArgumentParser(description="what the ignore sets save")
    parser.add_argument("--max-pages", type=int, default=5000)
    arguments = parser.parse_args()
    print("| sets | worth keeping | traps captured | the crawl |\n|---|---|---|---|")
    for name, options in RUNS.items():
        print(f"| {name} | {crawl(options, arguments.max_pages)}", flush=True)


if __name__ == "__main__":
    main()
