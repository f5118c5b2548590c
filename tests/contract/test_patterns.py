"""No pattern of ours has a possessive or atomic group: `re` matches these wrongly before CPython 3.11.5 (0178).

Possessive repetitions of one character or one set (`[^"]*+`) are another instruction of the engine and were right.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]

import pytest
from source_tree import nodes, path_of, trees

_CALLS = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
_AT_IMPORT = """
import importlib, json, sys
from re import _compiler
compiled, known = _compiler.compile, []
def compile(pattern, flags=0):
    if isinstance(pattern, (str, bytes)):
        text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
        frame = sys._getframe(1)
        while frame and "muniment" not in frame.f_code.co_filename:
            frame = frame.f_back
        known.append((frame.f_code.co_filename if frame else "", text, int(flags), isinstance(pattern, str)))
    return compiled(pattern, flags)
_compiler.compile = compile
for name in json.loads(sys.stdin.read()):
    importlib.import_module(name)
print(json.dumps([one for one in known if one[0]]))
"""


def _compiled_at_import() -> list[tuple[str, str | bytes, int]]:
    """Every pattern that one of our modules has compiled when all are imported, with its file and flags."""
    names = [name for name in trees() if not name.endswith("__main__")]
    made = subprocess.run(
        [sys.executable, "-c", _AT_IMPORT],
        input=json.dumps(names), capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(made.stdout)
    return [
        (Path(file).name, text if is_text else text.encode("latin-1"), flags) for file, text, flags, is_text in found
    ]


def _written_in_calls() -> Iterator[tuple[str, str | bytes, int]]:
    """The patterns that stand in calls of `re` itself, compiled or not; what an f-string fills in is a letter."""
    for module in trees():
        for node in nodes(module):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
                continue
            if ast.unparse(node.func.value) == "re" and node.func.attr in _CALLS:
                text = _text(node.args[0])
                if text is not None:
                    flags = re.VERBOSE if "VERBOSE" in ast.unparse(node) else 0
                    yield path_of(module).name, text, int(flags)


def _text(node: ast.expr) -> str | bytes | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    return None


def _groups(parsed: object) -> Iterator[str]:
    """The possessive and the atomic groups of a parsed pattern."""
    if isinstance(parsed, _parser.SubPattern):
        for operation, argument in parsed:
            if operation is _constants.ATOMIC_GROUP:
                yield "an atomic group"
            elif operation is _constants.POSSESSIVE_REPEAT and not _compiler._simple(argument[2]):
                yield "a possessive group"
            yield from _groups(argument)
    elif isinstance(parsed, list | tuple):
        for part in parsed:
            yield from _groups(part)


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("(?:ab)*+", 1), ("(?:ab)?+", 1), ("(a)++", 1), ("(?>a|b)", 1), ("(?:x(?:ab){1,2}+)*", 1),
        ("[^a]*+", 0), ("a?+b", 0), ("(?:[a-z])++", 0), (r"\s{1,3}+(?:ab)*", 0), ("(?:ab)*", 0),
    ],
)  # fmt: skip
def test_groups_are_seen(pattern, count):
    assert len(list(_groups(_parser.parse(pattern)))) == count


def test_no_pattern_has_a_possessive_group():
    compiled, written = _compiled_at_import(), list(_written_in_calls())
    assert len(compiled) > 60
    assert len(written) > 40
    wrong = {
        (file, pattern, what)
        for file, pattern, flags in (*compiled, *written)
        for what in _groups(_parser.parse(pattern, flags))
    }
    assert not wrong
