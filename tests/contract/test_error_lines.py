"""Every error that the outside world can cause says what to do, or `docs/troubleshooting.md` does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from source_tree import nodes, trees

from muniment import errors

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md").read_text()
USE = 2
"""The exit code of errors that a command line causes: the line names what was typed, and says what is taken."""
INTERNAL = {"ProtocolError", "WrongAskError", "TooLargeError", "muniment.tracker.db.statements"}
"""What processes and modules of ours say to each other; a user cannot cause them."""
REMEDY = re.compile(
    r"[;:,] (?:see|give|end|check|make|put|start|choose|when|remove|leave|go on|look|wait|\w+ once|say|set|raise)\b"
    r"|\bagain\b|; \w+"
)
CODES = {name: getattr(errors, name).exit_code for name in errors.__all__}
SHORTEST = 9
"""Characters of a piece of a message that is looked for in the page."""


def written(node: ast.expr) -> str:
    """The text of a message; what is filled in is `…`."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(written(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return written(node.left) + written(node.right)
    return "…"


def messages() -> Iterator[tuple[str, str, str]]:
    """Each message of an error of ours: module, class, text."""
    for module in trees():
        for node in nodes(module):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if name in CODES and isinstance(node, ast.Call) and node.args:
                yield module, name, written(node.args[0])


def is_told(text: str) -> bool:
    """Whether the page has the longest piece of a message."""
    pieces = [piece.strip(" :;,'()") for piece in text.split("…")]
    return any(len(piece) >= SHORTEST and piece in PAGE for piece in pieces)


def test_messages_are_found() -> None:
    found = list(messages())
    assert len(found) > 300
    assert {name for _, name, _ in found} >= {"UsageError", "ArchiveError", "TrackerError", "ServerLostError"}


def test_each_error_says_what_to_do_or_the_page_does() -> None:
    silent = [
        f"{module}: {name}: {text}"
        for module, name, text in messages()
        if CODES[name] != USE and not {name, module} & INTERNAL and set(text) != {"…"}
        if not REMEDY.search(text) and not is_told(text)
    ]
    assert silent == [], "\n".join(silent)
