"""The documents are plain English ("not a …", "stored", "sent", numbers), no diary, and short enough to be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
BANNED = re.compile(
    r"(?<!there )\bis no (?!longer|more|part)|(?<!there )\b(?:is|are) none\b|\bnever is\b|\blies\b|\btold\b|\btells\b"
    r"|\bknows?\b|\bstands?\b|\bwhoever\b"
    r"|\bso many\b|\bby hand\b|\bwas not found\b|\bhalf an hour later\b|\blast will\b|\bkeepers?\b",
    re.IGNORECASE,
)

MOST_WORDS = 40_000
MOST_WORDS_OF_README = 600


def prose(text: str) -> str:
    """The text on one line, without blocks and what is quoted as code."""
    plain = re.sub(r"(?ms)^```.*?^```$", "", text)
    return " ".join(re.sub(r"`[^`\n]*`", "", plain).split())


@pytest.mark.parametrize("text", ["What is no page", "the others are none", "as it stands", "whoever knows", "by hand"])
def test_phrases_are_found(text: str) -> None:
    assert BANNED.search(prose(text))


@pytest.mark.parametrize("text", ["there is no job 5", "is no longer read", "not a page", "`is no page`", "unknown"])
def test_plain_english_passes(text: str) -> None:
    assert not BANNED.search(prose(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_documents_are_plain_english(page: Path) -> None:
    text = prose(page.read_text())
    assert [text[max(0, found.start() - 40) : found.end() + 40] for found in BANNED.finditer(text)] == []


def test_documents_are_short_enough_to_be_read() -> None:
    words = {page.relative_to(ROOT).as_posix(): len(page.read_text().split()) for page in (ROOT / "docs").rglob("*.md")}
    longest = sorted(words, key=words.__getitem__, reverse=True)[:5]
    assert sum(words.values()) <= MOST_WORDS, f"shorten a page; the longest are {', '.join(longest)}"


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= MOST_WORDS_OF_README
