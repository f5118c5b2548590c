"""Makes the corpus of the fetch benchmark: files of the sizes and the compressibility of web pages, each of its own.

2,000 files by default, 56 KB on average: HTML with a median of 30 KB and a long tail, and one in twenty an
incompressible image of 50 to 500 KB. Copies differ in their first bytes, so that no payload is there twice.
"""

from __future__ import annotations

import random
from pathlib import Path

MEDIAN, SIGMA, LARGEST = 30_000, 0.88, 260_000
WORDS = 3_000
SENTENCES = 160
"""Of each page: text repeats itself, markup more so; together they deflate five to one, as web pages do."""


def make_corpus(root: Path, files: int = 2_000, copies: int = 1, size: int = 0) -> list[str]:
    """Write what is not there yet; returns the paths. With `size`, every file is a page of so many bytes."""
    chance = random.Random(7)
    words = ["".join(chance.choices("etaoinshrdlucmfwypvbgkjqxz", k=chance.randint(2, 11))) for _ in range(WORDS)]
    paths = []
    for number in range(files):
        image = not size and number % 20 == 7
        content = chance.randbytes(chance.randint(50_000, 500_000)) if image else page(chance, words, number, size)
        for copy in range(copies):
            path = f"{number // 100}/{number}-{copy}.{'png' if image else 'html'}"
            paths.append(path)
            mark = b"\x89PNG%08d" % copy if image else b"<!-- %08d %08d -->" % (number, copy)
            write(root / path, mark + content)
    return paths


def write(path: Path, content: bytes) -> None:
    if not path.exists() or path.stat().st_size != len(content):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def page(chance: random.Random, words: list[str], number: int, size: int) -> bytes:
    """HTML of a drawn size: paragraphs of words, and links in between."""
    wanted = size or min(LARGEST, max(3_000, int(chance.lognormvariate(0, SIGMA) * MEDIAN)))
    pieces = [f"<!doctype html><html><head><title>{number}</title></head><body>"]
    length = len(pieces[0])
    sentences = [" ".join(chance.choices(words, k=9)).capitalize() + "." for _ in range(SENTENCES)]
    while length < wanted:
        text = " ".join(chance.choices(sentences, k=3))
        link = f"/{chance.randrange(20)}/{chance.randrange(2_000)}-0.html"
        pieces.append(f'<p class="text">{text}</p>\n<a class="link" href="{link}">{chance.choice(words)}</a>\n')
        length += len(pieces[-1])
    return "".join(pieces).encode()[:wanted]
