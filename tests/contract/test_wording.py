"""Help, errors and docstrings are plain English ("not a …", "stored", "sent") and name nothing from elsewhere."""

from __future__ import annotations

import ast
import re

import pytest
from source_tree import trees

BANNED = re.compile(
    r"(?<!there )\bis no (?!longer|more)|(?<!there )\bis none\b|(?<!there )\bare none\b|\bnever is\b"
    r"|\blies\b|\btold\b|\btells\b|\bheard\b|\blast will\b|\bkeepers?\b"
    r"|\bseed 00\d|\bdesign \d|\bcontract\b(?! test)",
    re.IGNORECASE,
)


def sentences(tree: ast.Module) -> list[str]:
    """Each text of a module with more than one word, on one line, without what is quoted as code."""
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return [" ".join(re.sub(r"`[^`]*`", "", text).split()) for text in texts if " " in text.strip()]


@pytest.mark.parametrize("text", ["'x' is no URL", "None when it is none", "as it was told", "see design 4.7"])
def test_phrases_are_found(text: str) -> None:
    assert BANNED.search(text)


@pytest.mark.parametrize("text", ["there is no job 5", "is no longer read", "'x' is not a URL", "a contract test"])
def test_plain_english_passes(text: str) -> None:
    assert not BANNED.search(text)


def test_texts_are_plain_english() -> None:
    found = [
        f"{module}: …{text[max(0, match.start() - 40) : match.end() + 40]}…"
        for module, tree in trees().items()
        for text in sentences(tree)
        for match in BANNED.finditer(text)
    ]
    assert not found, "\n".join(found)
