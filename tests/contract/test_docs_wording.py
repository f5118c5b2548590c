"""The documents are plain English ("not a …", "stored", "sent", numbers) and have no diary of how they came to be."""

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
