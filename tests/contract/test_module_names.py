"""Names of modules, classes and columns that docstrings, comments and documentation have in backticks exist."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from source_tree import ROOT as PACKAGE

from muniment.tracker.schema.pipelines import metadata
from muniment.tracker.schema.processes import metadata as metadata_of_processes

ROOT = Path(__file__).resolve().parents[2]
OURS = ("src", "tests", "benchmarks", "fuzz", "scripts", "docs")
CODE = (".py", ".sql", ".md", ".toml")
DATA = re.compile(
    r"\.(sqlite|place|lock|pid|json|jsonl|parquet|log|txt|xml|html|sh|conf|idx|open|journal|com|org|example|uk|io|damaged|second|before)$"
)
"""Endings of files that Muniment or others write, and of host names."""
FOREIGN = {"db/ignore_patterns", "array_recv", "nohup", "intranet"}
"""Paths and words of other programs."""


@cache
def paths() -> frozenset[str]:
    """Every file of the tree that is ours, from its root, between slashes."""
    found = (path for name in OURS for path in (ROOT / name).rglob("*") if "__pycache__" not in path.parts)
    return frozenset(f"/{path.relative_to(ROOT).as_posix()}/" for path in (*found, *ROOT.glob("*.*")))


@cache
def all_paths() -> str:
    return "\n".join(paths())


@cache
def folders() -> frozenset[str]:
    return frozenset(part for path in paths() for part in path.split("/")[1:-2])


@cache
def modules() -> dict[str, Path]:
    """Each way to name a module by its last parts."""
    found: dict[str, Path] = {}
    for path in sorted((*PACKAGE.rglob("*.py"), *(ROOT / "tests" / "support").rglob("*.py"))):
        parts = path.relative_to(PACKAGE.parent if PACKAGE in path.parents else ROOT).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found |= {".".join(parts[at:]): path for at in range(len(parts))}
    return found


@cache
def names_in(path: Path) -> frozenset[str]:
    """Everything that a module defines or sets, inside of its classes, too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
    return frozenset(found)


@cache
def classes() -> dict[str, Path]:
    texts = {path: path.read_text("utf-8") for path in set(modules().values())}
    return {name: path for path, text in texts.items() for name in re.findall(r"^ *class (\w+)", text, re.MULTILINE)}


@cache
def columns() -> frozenset[str]:
    tables = (*metadata.tables.values(), *metadata_of_processes.tables.values())
    return frozenset(f"{table.name}.{column.name}" for table in tables for column in table.columns)


@cache
def is_known(name: str) -> bool:
    """Whether a dotted or path-like name exists, or is not one of ours."""
    if name in FOREIGN or DATA.search(name) or re.fullmatch(r"\w+/[\d.]+|[\d.]+(:\d+)?", name):
        return True
    if "/" in name or name.endswith(CODE):
        is_ours = name.endswith(CODE) or name.partition("/")[0] in folders()
        return not is_ours or f"/{name}/" in all_paths() or f"/{name}.py/" in all_paths()
    return name in columns() or _is_dotted(name)


def _is_dotted(name: str) -> bool:
    head, *rest = name.split(".")
    if head in classes():
        return rest[0] in names_in(classes()[head])
    for count in range(len(rest) + 1, 0, -1):
        module = modules().get(".".join((head, *rest)[:count]))
        if module is not None:
            left = (head, *rest)[count:]
            return (not left or left[0] in names_in(module)) or _is_foreign(name)
    return _is_foreign(name)


def _is_foreign(name: str) -> bool:
    """Whether the longest part of a name that may be a module is one of Python's or of a package."""
    for part in (name, name.rpartition(".")[0]):
        try:
            spec = find_spec(part)
        except ImportError:
            continue
        # an earlier test may have put a folder of ours on the path of imports
        places = (
            [Path(place) for place in (spec.origin, *(spec.submodule_search_locations or ())) if place] if spec else []
        )
        if spec is not None and not any(place.is_relative_to(ROOT / ours) for place in places for ours in OURS):
            return True
    return False


def quoted(text: str) -> list[str]:
    """The dotted and path-like names of a text that stand in backticks."""
    return [name.removesuffix("()") for name in re.findall(r"`(\w+(?:[./]\w+)+(?:\(\))?)`", text)]


@cache
def tokens(path: Path) -> tuple[tokenize.TokenInfo, ...]:
    return tuple(tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline))


def texts() -> Iterator[tuple[str, str]]:
    """Docstrings and comments of modules, and pages of documentation, each with its place."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        for token in tokens(path):
            if token.type in {tokenize.COMMENT, tokenize.STRING}:
                yield f"{place}:{token.start[0]}", token.string
    for path in sorted((*PACKAGE.rglob("*.sql"), *(ROOT / "docs").rglob("*.md"))):
        text = path.read_text("utf-8")
        # a decision that was withdrawn is about what is gone
        if ". Withdrawn by " not in text:
            yield path.name, text


@cache
def words() -> frozenset[str]:
    """Every name, and every word that is a string, in the code."""
    found = set(modules()) | {path.split("/")[-2].partition(".")[0] for path in paths()}
    for path in (*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")):
        for token in tokens(path):
            if token.type == tokenize.NAME or (token.type == tokenize.STRING and " " not in token.string):
                found |= set(re.findall(r"\w+", token.string))
    return frozenset(found)


def test_stale_names_are_found() -> None:
    stale = ("tracker.nonesuch", "rules/heads.py", "seen.pack", "pages.colour", "Crew.end", "queue/tables.py")
    assert [name for name in stale if is_known(name)] == []


def test_names_that_exist_pass() -> None:
    real = ("seen_cache.pack", "rules/retry.py", "pages.counted", "crawl.jsonl", "msgspec.Struct", "model/process")
    assert [name for name in real if not is_known(name)] == []


def test_names_in_backticks_exist() -> None:
    assert [f"{place}: {name}" for place, text in texts() for name in quoted(text) if not is_known(name)] == []


def test_single_words_in_backticks_are_names_in_the_code() -> None:
    found = [(place, name) for place, text in texts() for name in re.findall(r"`([a-z]\w*|_\w+)`", text)]
    of_code = [(place, name) for place, name in found if ".py:" in place]
    assert [f"{place}: {name}" for place, name in of_code if name not in words() | FOREIGN] == []
