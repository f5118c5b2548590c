"""How Sphinx makes a web site of these documents (`scripts/site`); GitHub shows the same files without it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pygments.lexers.shell import BashLexer

ROOT = Path(__file__).resolve().parents[1]

project = "Muniment"
author = copyright = "The Muniment developers"  # noqa: A001  (Sphinx has named it)
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md"]
html_theme = "furo"
html_title = f"Muniment {release}"
html_copy_source = False
myst_heading_anchors = 4
suppress_warnings = ["myst.xref_missing"]  # anchors; tests/contract/test_docs.py resolves every link


def _to_code(found: re.Match[str]) -> str:
    """A link to a file that is not a page becomes its text: the site has no sources."""
    text, target = found[1], found[2].partition("#")[0]
    return found[0] if "://" in target or not target or target.endswith(".md") else text


def _contents(text: str) -> str:
    """The pages that a list of pages links, below each heading, as tables of contents for the side bar."""
    trees, seen = [], set[str]()
    for part in re.split(r"(?m)^## ", text):
        pages = [page for page in re.findall(r"\]\(([\w./-]+\.md)\)", part) if not (page in seen or seen.add(page))]
        names = "\n".join(page.removesuffix(".md") for page in pages)
        trees.append(f"```{{toctree}}\n:hidden:\n:caption: {part.splitlines()[0].lstrip('# ')}\n\n{names}\n```\n")
    return "\n".join(trees)


def _read(_app: Any, name: str, source: list[str]) -> None:
    source[0] = re.sub(r"(?<!!)\[([^\]\n]*(?:\n[^\]\n]+)?)\]\(([^)\s]+)\)", _to_code, source[0])
    if name == root_doc:
        source[0] += "\n" + _contents(source[0])


def setup(app: Any) -> None:
    """Register what is done to each page when it is read, and a language of code that Pygments lacks."""
    app.add_lexer("cron", BashLexer)
    app.connect("source-read", _read)
