"""Writes the benchmark's site: pages that link as real ones do, the same bytes every time.

HTML sizes are log-normal (median 30 KB, most 7 to 135 KB); for every twenty pages there is an image of 50 to 500 KB
that does not compress, so that all files have a mean of 56 KB. Every file can be reached from /index.html.

Usage: python benchmarks/make_site.py DIR [--pages N] [--origin URL]
"""

from __future__ import annotations

import argparse
import bisect
import hashlib
import itertools
import json
import math
import random
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

VERSION = 2
MEDIAN_BYTES, SIGMA, LEAST_BYTES, MOST_BYTES = 30_000, 0.93, 4_000, 260_000
LINKS_PER_PAGE, CHILDREN = 40, 20
PAGES_PER_IMAGE, IMAGE_BYTES = 20, (50_000, 500_000)
MANIFEST, URLS = "manifest.json", "urls.txt"
NAMES = (
    "news science history arts music travel health law sport nature food books film maps games letters archive events "
    "people places fiction weather markets schools essays gardens trains radio museum about"
)
SECTIONS = NAMES.split()


@dataclass(frozen=True)
class Plan:
    """What a site is made from; the same plan gives the same bytes."""

    pages: int
    origin: str
    """Absolute links name it, so that the server must listen there."""
    seed: int = 1
    version: int = VERSION


def make_site(directory: Path, plan: Plan) -> list[str]:
    """Make the site, or find it made before; the answer is the path of every file, index.html first."""
    manifest, urls = directory / MANIFEST, directory / URLS
    if manifest.exists() and json.loads(manifest.read_text()) == asdict(plan):
        return urls.read_text().split("\n")
    directory.mkdir(parents=True, exist_ok=True)
    manifest.unlink(missing_ok=True)
    paths = _write(directory / "root", plan)
    urls.write_text("\n".join(paths))
    # Written last: a site that was left half-made has no manifest.
    manifest.write_text(json.dumps(asdict(plan)))
    return paths


def _write(root: Path, plan: Plan) -> list[str]:
    chance = random.Random(plan.seed)
    paths = _page_paths(plan.pages)
    images = [f"/media/{n % 40:02d}/figure-{n:05d}.jpg" for n in range(math.ceil(plan.pages / PAGES_PER_IMAGE))]
    for folder in {Path(path).parent for path in (*paths, *images, "/assets/x")}:
        (root / str(folder)[1:]).mkdir(parents=True, exist_ok=True)
    pool = Paragraphs(chance)
    for number, path in enumerate(paths):
        (root / path[1:]).write_text(_page(number, paths, images, plan, pool, chance))
    noise = chance.randbytes(IMAGE_BYTES[1])
    for number, path in enumerate(images):
        # Each image differs, as real ones do, or an archiver would keep only the first.
        body = b"\xff\xd8\xff\xe0" + hashlib.sha256(b"%d" % number).digest() + noise[: chance.randint(*IMAGE_BYTES)]
        (root / path[1:]).write_bytes(body)
    (root / "assets/site.css").write_text(_STYLE)
    (root / "assets/site.js").write_text(_SCRIPT)
    return [*paths, *images, "/assets/site.css", "/assets/site.js"]


def _page_paths(pages: int) -> list[str]:
    sections = [f"/{name}/index.html" for name in SECTIONS]
    articles = (f"/{SECTIONS[n % len(SECTIONS)]}/{1990 + n % 35}/article-{n:05d}.html" for n in itertools.count())
    return ["/index.html", *sections, *itertools.islice(articles, max(0, pages - len(sections) - 1))]


class Paragraphs:
    """A store of paragraphs: pages are dealt from it, so that making 1.7 GB of text takes seconds."""

    def __init__(self, chance: random.Random, count: int = 6000) -> None:
        syllables = [a + b for a in "bcdfghlmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "is", "on", "ent")]
        words = ["".join(chance.choices(syllables, k=chance.choice((1, 2, 2, 3, 3, 4)))) for _ in range(6000)]
        # Words are used as in any language, the nth most frequent 1/n as often as the first (Zipf).
        self._weights = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(len(words))))
        self._words = words
        self.texts = [self._paragraph(chance) for _ in range(count)]

    def _paragraph(self, chance: random.Random) -> str:
        body = " ".join(chance.choices(self._words, cum_weights=self._weights, k=chance.randint(30, 90)))
        return _SECTION.format(number=chance.randrange(10**8), title=body[:30].title(), body=body)


def _page(number: int, paths: list[str], images: list[str], plan: Plan, pool: Paragraphs, chance: random.Random) -> str:
    size = min(MOST_BYTES, max(LEAST_BYTES, round(MEDIAN_BYTES * math.exp(SIGMA * chance.gauss(0, 1)))))
    pieces = [_head(number), _navigation(plan.origin)]
    pieces += [f'<img class="figure" src="{image}" alt="">\n' for image in _images_of(number, images)]
    links = iter(_links(number, paths, plan.origin, size, chance))
    left = size - sum(map(len, pieces))
    paragraphs = itertools.cycle(chance.sample(pool.texts, 400))
    for link in links:
        pieces.append(link)
        left -= len(link)
    while left > 0:
        text = next(paragraphs)
        pieces.append(text)
        left -= len(text)
    pieces.append("</main>\n</body>\n</html>\n")
    return "".join(pieces)


def _head(number: int) -> str:
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Page {number}</title>\n'
        '<link rel="stylesheet" href="/assets/site.css">\n<script src="/assets/site.js" defer></script>\n'
        "</head>\n<body>\n"
    )


def _navigation(origin: str) -> str:
    items = (
        f'  <li class="nav__item"><a class="nav__link" href="{origin if n % 10 == 9 else ""}/{name}/index.html">'
        f"{name}</a></li>\n"
        for n, name in enumerate(SECTIONS)
    )
    return f'<nav class="nav" aria-label="Sections">\n<ul>\n{"".join(items)}</ul>\n</nav>\n<main>\n'


def _images_of(number: int, images: list[str]) -> list[str]:
    own = [images[number // PAGES_PER_IMAGE]] if number % PAGES_PER_IMAGE == 0 else []
    return [*own, images[number * 7919 % len(images)]] if number % 3 == 0 else own


def _links(number: int, paths: list[str], origin: str, size: int, chance: random.Random) -> list[str]:
    """The content's links: the page's children in a tree of all pages, and others by chance; fewer on small pages."""
    first = number * CHILDREN + 1
    targets = paths[first : first + CHILDREN]
    wanted = min(LINKS_PER_PAGE * 3, max(12, round(LINKS_PER_PAGE * (size / MEDIAN_BYTES) ** 0.6)))
    targets += chance.choices(paths, k=max(0, wanted - len(targets)))
    chance.shuffle(targets)
    hrefs = (_href(paths[number], target, origin, chance.random()) for target in targets)
    return [f'<p class="teaser"><a class="teaser__link" href="{href}">Read {href[-10:-5]}</a></p>\n' for href in hrefs]


def _href(page: str, target: str, origin: str, chance: float) -> str:
    """Root-relative for six in ten links, relative for three, absolute for one; a few with a fragment."""
    form = bisect.bisect((0.55, 0.60, 0.90), chance)
    if form == 0:
        return target
    if form == 1:
        return f"{target}#comments"
    if form == 3:
        return origin + target
    here, there = page.split("/")[1:-1], target.split("/")[1:]
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(here, there[:-1], strict=False)))
    return "../" * (len(here) - same) + "/".join(there[same:])


# As wordy as real mark-up and about as hard on zlib: its level 9, which wget uses, does 26 MB/s here, 25 on Python's
# documentation. With terser mark-up it does 12, and every figure would favour whoever compresses with something else.
_SECTION = """\
<section class="article-section article-section--body layout-grid layout-grid--wide" data-component="text-block">
  <div class="article-section__header typography-heading typography-heading--small" id="section-{number:08d}">
    <h2 class="article-section__title" data-track="section-title" aria-label="Part of this page">{title}</h2>
    <span class="article-section__anchor anchor-link anchor-link--hidden" data-target="section-{number}"></span>
  </div>
  <p class="article-section__text typography-body typography-body--regular">{body}.</p>
</section>
"""
_STYLE = "".join(f".section-{n} {{ color: #{n * 997 % 4096:03x}; margin: {n % 9}px }}\n" for n in range(400))
_SCRIPT = "".join(f"function step{n}(value) {{ return value * {n} + 1; }}\n" for n in range(400))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--pages", type=int, default=30_000)
    parser.add_argument("--origin", default="http://127.0.0.1:18480")
    arguments = parser.parse_args()
    paths = make_site(arguments.directory, Plan(arguments.pages, arguments.origin))
    sizes = sorted((arguments.directory / "root" / path[1:]).stat().st_size for path in paths)
    pages = sorted((arguments.directory / "root" / p[1:]).stat().st_size for p in paths if p.endswith(".html"))
    print(
        f"{len(paths)} files, {sum(sizes) / 1e6:.0f} MB, mean {sum(sizes) / len(sizes):.0f}, "
        f"median {sizes[len(sizes) // 2]} (HTML {pages[len(pages) // 2]})",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
