"""Compare the ways to take links out of HTML: time per page, hostile input, and a table of cases.

Run `python benchmarks/extraction.py`; `--rounds N` for more. The pages are generated (45 KB, 70 links, the same on
every run). In a round each candidate takes all pages in turn, the next round begins with another candidate, and each
figure is the mean over pages of the median over rounds.
selectolax is optional: without it, only its lines are missing.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from turbohtml import parse, tokenize

from muniment.extract.links import extract

try:
    from selectolax.lexbor import LexborHTMLParser
except ImportError:
    LexborHTMLParser = None

WORDS = ("archive", "page", "river", "stone", "letter", "record", "winter", "copper", "garden", "window", "harbour")
SELECTOR = (
    "[href],[src],[style],[srcset],[data-src],[data-srcset],[data-original],[action],[poster],[background],[data],"
    "[imagesrcset],meta[http-equiv],style,noframes"
)
Candidate = Callable[[bytes], object]


def page(seed: int, size: int = 46_000, links: int = 70) -> bytes:
    """An HTML page of about `size` bytes with `links` references, a sixth of them images."""
    rng = random.Random(seed)
    entries = links - 14
    room = (size - 1800) // entries // 7 - 14
    out = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Page</title>\n'
        '<link rel="stylesheet" href="/static/site.css">\n<link rel="icon" href="/favicon.ico">\n'
        '<script src="/static/app.js" defer></script>\n'
        "<style>body{margin:0;font:16px/1.5 serif} .hero{background:url(/static/hero.png)}</style>\n</head>\n<body>\n"
    ]
    out.extend(f'<a class="nav-item" href="/section/{n}/">{rng.choice(WORDS)}</a>\n' for n in range(10))
    for n in range(entries):
        text = " ".join(rng.choices(WORDS, k=room))
        number = rng.randrange(10**6)
        if n % 6 == 5:
            out.append(
                f'<figure class="c{n}"><img src="/img/{number}.jpg" alt="x" width="320"></figure><p>{text}</p>\n'
            )
        else:
            link = f'<a href="/page/{number}?s={n}&amp;p=1" title="x">{rng.choice(WORDS)}</a>'
            out.append(
                f'<div class="entry" id="e{n}"><h3>{rng.choice(WORDS)}</h3><p>{text} {link} <em>x</em></p></div>\n'
            )
    out.append("</body>\n</html>\n")
    return "".join(out).encode()


def turbo_links(payload: bytes) -> list[tuple[str, str | None, str]]:
    return [(link[0].tag, link[1], link[2]) for link in parse(payload, positions=False).links()]


def turbo_select(payload: bytes) -> list[tuple[str, dict[str, object]]]:
    return [(e.tag, e.attrs.copy()) for e in parse(payload, positions=False).select(SELECTOR)]


def turbo_tokens(payload: bytes) -> list[tuple[str | None, object]]:
    return [(t.tag, t.attrs) for t in tokenize(payload.decode("utf-8", "replace")) if t.type == 1 and t.attrs]


def lexbor_select(payload: bytes) -> list[tuple[str | None, dict[str, str | None]]]:
    return [(n.tag, n.attributes) for n in LexborHTMLParser(payload).css(SELECTOR)]


def muniment(payload: bytes) -> object:
    return extract(payload, "text/html; charset=utf-8", "http://a.example/")


def candidates() -> dict[str, Candidate]:
    found: dict[str, Candidate] = {
        "muniment extract(), whole call": muniment,
        "turbohtml parse": lambda payload: parse(payload, positions=False),
        "turbohtml parse + links()": turbo_links,
        "turbohtml parse + select() + attributes": turbo_select,
        "turbohtml tokens": turbo_tokens,
    }
    if LexborHTMLParser is not None:
        found["selectolax parse"] = LexborHTMLParser
        found["selectolax parse + css() + attributes"] = lexbor_select
    return found


def time_pages(rounds: int) -> None:
    pages = [page(seed) for seed in range(25)]
    print(f"{statistics.mean(map(len, pages)):.0f} bytes, {len(muniment(pages[0]))} links, {rounds} rounds")
    times: dict[str, list[list[float]]] = {name: [[] for _ in pages] for name in candidates()}
    order = list(candidates().items())
    for turn in range(rounds):
        for name, run in order[turn % len(order) :] + order[: turn % len(order)]:
            for number, payload in enumerate(pages):
                started = time.perf_counter()
                run(payload)
                times[name][number].append((time.perf_counter() - started) * 1e6)
    for name, by_page in times.items():
        median = statistics.mean(map(statistics.median, by_page))
        best = statistics.mean(map(min, by_page))
        print(f"  {name:42} {median:7.1f} us a page (best {best:.1f})")


CASES = {
    "attribute case, unquoted": b"<A HREF=x>",
    "entities": b"<a href='?a=1&amp;x'>",
    "srcset": b"<img srcset='w 1x, x 2x'>",
    "imagesrcset": b"<link rel=preload imagesrcset='x 1x'>",
    "meta refresh": b"<META HTTP-EQUIV=Refresh content='0;URL=\"x\"'>",
    "style element": b"<style>@import 'x'</style>",
    "style attribute": b"<p style='background:url( x )'>",
    "CSS comment": b"<style>/* url(no) */ b{c:url(x)}</style>",
    "CSS string": b"<style>b{c:'url(no)';d:url(x)}</style>",
    "CSS escape": b"<style>b{c:url(\\78 )}</style>",
    "noscript": b"<noscript><img src=x></noscript>",
    "noframes": b"<noframes><a href=x></noframes>",
    "template": b"<template><img src=x></template>",
    "declarative shadow root": b"<div><template shadowrootmode=open><img src=x></template></div>",
    "svg xlink": b"<svg><image xlink:href=x /></svg>",
    "data-src": b"<img data-src=x>",
    "background": b"<table background=x>",
    "broken table": b"<table><a href=x><tr>",
    "XHTML empty script": b"<script src=a /><a href=x />",
    "line break in href": b"<a href='java\nx'>",
}


def show_cases() -> None:
    """Whether the target is somewhere in what each candidate hands over, and nothing of what a comment hides."""
    print("cases: does x come out, as a URL of its own (srcset, CSS and refresh split), and no decoy")
    for name, markup in CASES.items():
        content_type = "application/xhtml+xml" if name.startswith("XHTML") else "text/html"
        found = extract(markup, content_type, "http://a.example/")
        ours = [href for href, _ in found.links] + found.anchors
        line = {"muniment": ours, "links()": [url for _, _, url in turbo_links(markup)]}
        if LexborHTMLParser is not None:
            line["selectolax"] = [v for _, a in lexbor_select(markup) for v in a.values() if v]
        marks = (f"{who} {'yes' if is_clean(urls) else 'no'}" for who, urls in line.items())
        print(f"  {name:26} {', '.join(marks)}")


def is_clean(urls: list[str]) -> bool:
    return any(url.endswith("x") and " " not in url and len(url) < 8 and "\n" not in url for url in urls) and (
        "no" not in urls
    )


def hostile(name: str, size: int) -> str:
    """Seconds and memory that a candidate takes for unclosed formatting elements, in a process of its own."""
    limit = 6 << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    payload = b"".join(b"<b id=%d><p>" % n for n in range(size))
    started = time.perf_counter()
    try:
        candidates()[name](payload)
    except MemoryError:
        return "out of memory (6 GiB)"
    seconds = time.perf_counter() - started
    return f"{seconds:.3f} s, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB"


def show_hostile(size: int) -> None:
    print(f"{size} unclosed <b id=N><p>:")
    for name in candidates():
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            try:
                print(f"  {name:42} {pool.submit(hostile, name, size).result()}")
            except Exception as error:  # a killed process is a result here
                print(f"  {name:42} died: {type(error).__name__}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--hostile", type=int, default=6000)
    chosen = options.parse_args()
    time_pages(chosen.rounds)
    show_cases()
    show_hostile(chosen.hostile)


if __name__ == "__main__":
    main()
