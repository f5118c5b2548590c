"""The house (design 3 and 6): imports go downward, no circles; names say something; modules and functions are small."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from graphlib import TopologicalSorter
from inspect import iscoroutinefunction

from source_tree import folder, imports, modules, nodes, path_of, trees

from muniment.crawl import ports

FLOORS = (
    {"errors", "clock", "disk", "lifetime"},
    {"settings"},
    {"model"},
    {"rules", "extract"},
    {"http"},
    {"tracker", "remote", "fetch", "proxy", "browser", "archive", "seeds", "live", "procs"},
    {"crawl", "control"},
    {"app"},
    {"web", "replay", "irc"},
    {"cli"},
)
FLOOR = {name: floor for floor, names in enumerate(FLOORS) for name in names}
BESIDE = {"", "__main__"}
"""The package itself, and `python -m`."""
VAGUE = {"utils", "util", "common", "helpers", "helper", "base", "misc", "lib", "core", "tools", "shared", "stuff"}
LONGEST_FUNCTION, LONGEST_MODULE = 60, 600
MODULES = sorted(modules())


def test_every_folder_has_a_floor():
    assert {folder(module) for module in MODULES} <= set(FLOOR) | BESIDE


def test_there_is_something_to_look_at():
    assert len(MODULES) > 50
    assert imports("muniment.cli.crawl") >= {"muniment.app.inputs.start_urls", "muniment.cli.display.summary"}


def test_imports_go_downward():
    wrong = {
        module: there
        for module in MODULES
        if (here := folder(module)) not in BESIDE
        for there in {folder(target) for target in imports(module)} - {here, ""}
        if FLOOR.get(there, len(FLOORS)) >= FLOOR[here]
    }
    assert wrong == {}


def test_a_crawl_reaches_the_tracker_through_the_queue_door_alone():
    crawl = [module for module in MODULES if folder(module) == "crawl"]
    assert len(crawl) > 30
    assert {there for module in crawl for there in imports(module) if folder(there) == "tracker"} == set()
    calls = [name for name in vars(ports.Queue) if not name.startswith("_")]
    assert len(calls) <= 14
    assert all(iscoroutinefunction(getattr(ports.Queue, name)) for name in calls)


def test_no_import_circles():
    """Lazy imports included: a circle is a set of modules of which each is reached from the others."""
    order = TopologicalSorter({module: imports(module) for module in MODULES})
    order.prepare()  # raises CycleError, with the circle


def test_a_crawl_loads_nothing_of_the_network():
    """A command on one machine does not pay for servers and their clients."""
    loaded = "import sys, muniment.cli.crawl, muniment.app.run, muniment.app.worker, muniment.tracker.db.sqlite"
    asked = [sys.executable, "-c", f"{loaded}; print(*sys.modules)"]
    names = set(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split())
    assert "muniment.crawl.worker.loop" in names
    network = {"starlette", "uvicorn", "h11", "anyio", "httpx", "muniment.web", "muniment.remote", "psycopg"}
    assert names & network == set()
    assert names & {"cryptography", "muniment.proxy", "muniment.fetch.forwarding"} == set()


def test_module_names_say_something():
    assert [module for module in MODULES if VAGUE & set(module.split("."))] == []


def test_modules_are_small():
    lengths = {module: path_of(module).read_text("utf-8").count("\n") for module in MODULES}
    assert {module: length for module, length in lengths.items() if length > LONGEST_MODULE} == {}


def test_functions_are_small():
    lengths = {
        f"{module}.{node.name}": node.end_lineno - node.lineno + 1
        for module in MODULES
        for node in nodes(module)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION} == {}


def _all_of(module: str) -> list[str] | None:
    for node in trees()[module].body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    return None


def test_all_names_things_that_exist_once():
    wrong = []
    for module in MODULES:
        if names := _all_of(module):
            made = importlib.import_module(module)
            wrong += [f"{module}.{name}" for name in names if names.count(name) > 1 or not hasattr(made, name)]
    assert wrong == []


def test_what_is_taken_from_a_module_is_in_its_all():
    wrong = [
        f"{module} takes {alias.name} from {node.module}"
        for module in MODULES
        for node in nodes(module)
        if isinstance(node, ast.ImportFrom) and node.module in trees() and _all_of(node.module) is not None
        for alias in node.names
        if f"{node.module}.{alias.name}" not in trees() and alias.name not in _all_of(node.module)
    ]
    assert wrong == []


def test_every_module_says_what_it_is():
    assert [module for module in MODULES if not ast.get_docstring(trees()[module])] == []


def test_only_settings_read_the_environment_of_users():
    """Variables between processes apart (procs), nothing else reads it (design 3)."""
    readers = {
        module
        for module in trees()
        for node in nodes(module)
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
    }
    processes = {f"muniment.procs.{name}" for name in ("children.launch", "registry", "shim", "shim_server")}
    assert readers <= {"muniment.settings.environment", *processes}
