"""Each point of the checklist of the live plane has a test that names its number."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
POINTS = set(range(1, 62))


def named_points() -> set[int]:
    """The numbers in the marks of tests."""
    return {
        argument.value
        for path in TESTS.rglob("test_*.py")
        if "points(" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "points"
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, int)
    }


def test_each_point_has_a_test() -> None:
    assert named_points() == POINTS
