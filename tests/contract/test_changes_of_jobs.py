"""Nothing changes a job but the verbs, and the orchestrator on their behalf."""

from __future__ import annotations

import ast
from typing import get_args

from source_tree import folder, imports, nodes, trees

from muniment.model.change import Change

CHANGING_MODULES = {f"muniment.tracker.jobs.{name}" for name in ("changes", "control", "stash")}
CHANGING_NAMES = {"amend", "apply_reopen", "lock_slot", "reopen", "save_given", "save_rules", "save_settings"}
REQUESTS = {kind.__name__ for kind in get_args(Change)}
VERBS, FLEET, EXECUTOR = "muniment.control.verbs.", "muniment.control.fleet.", "muniment.crawl.orchestrator."


def outside() -> list[str]:
    return [
        name for name in trees() if folder(name) not in {"tracker", "model"} and not name.startswith((VERBS, FLEET))
    ]


def test_only_verbs_import_what_changes_a_job() -> None:
    assert {name: found for name in outside() if (found := imports(name) & CHANGING_MODULES)} == {}


def test_only_verbs_and_the_orchestrator_call_what_changes_a_job() -> None:
    callers = [name for name in outside() if CHANGING_NAMES & _called(name)]
    # the command line has the same verbs by a door, which is not the tracker's
    assert [name for name in callers if not name.startswith(EXECUTOR) and folder(name) != "cli"] == []


def test_only_verbs_make_requests() -> None:
    assert {"SetValues", "AddIgnore", "AbortJob", "StashPages"} <= REQUESTS
    assert [name for name in outside() if REQUESTS & _called(name)] == []


def test_each_verb_says_what_it_raises() -> None:
    """Who calls one shows its refusal to a person."""
    modules = [name for name in trees() if name.startswith(VERBS) and not name.endswith(".delivery")]
    assert len(modules) >= 7
    for module in modules:
        for node in trees()[module].body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                assert "UsageError" in (ast.get_docstring(node) or ""), f"{module}.{node.name}"


def _called(module: str) -> set[str]:
    """The names of functions and classes that a module calls."""
    functions = (node.func for node in nodes(module) if isinstance(node, ast.Call))
    named = (getattr(one, "id", "") or getattr(one, "attr", "") for one in functions)
    return set(named) - {""}
