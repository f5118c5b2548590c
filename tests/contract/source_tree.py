"""The package's own source, parsed once: modules, imports and names."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import muniment

ROOT = Path(muniment.__file__).parent
NAME = "muniment"


def module_name(path: Path) -> str:
    parts = (NAME, *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    """The file of every module but the migrations, which Alembic runs as scripts."""
    paths = (path for path in sorted(ROOT.rglob("*.py")) if not re.search("migrations/", path.as_posix()))
    return {module_name(path): path for path in paths}


@cache
def trees() -> dict[str, ast.Module]:
    """Every module, parsed."""
    return {module: ast.parse(path.read_text("utf-8")) for module, path in modules().items()}


@cache
def nodes(module: str) -> tuple[ast.AST, ...]:
    """Every node of a module."""
    return tuple(ast.walk(trees()[module]))


@cache
def path_of(module: str) -> Path:
    path = ROOT.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def folder(module: str) -> str:
    """The part of the house that a module belongs to: a folder, or a module beside them."""
    return module.split(".")[1] if "." in module else ""


@cache
def imports(module: str) -> frozenset[str]:
    """The package's own modules that a module imports, lazily or not."""
    found = set()
    for node in nodes(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: imports are absolute here"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in trees() else str(node.module) for name in names}
    return frozenset(found & set(trees())) - {module}
