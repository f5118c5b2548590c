"""The rooms of the house: floors inside, how many modules, what others import, and one meaning per class name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from source_tree import NAME, ROOT, imports, modules, nodes, path_of, trees

FLOORS = {
    "tracker": (
        {"schema"}, {"db"}, {"stores"}, {"jobs"}, {"queue"}, {"hooks"},
        {"open", "connect", "processes"}, {"views"}, {"fleet"},
    ),
    "archive": (
        {"names", "durable"}, {"warc", "event_log"}, {"index"}, {"segment", "failure_rows"},
        {"recovery", "export", "hooks", "reading"}, {"check"},
    ),
    "procs": (
        {"platform", "shim"},
        {"command_text", "liveness", "lock", "shim_server", "socket", "stop_timeouts", "store", "tree", "watchdog"},
        {"files"},
        {"registry"},
        {"stop"}, {"children", "sweep"}, {"hooks"},
    ),
}  # fmt: skip
"""From the lowest up; what is on one floor does not import each other."""
ENGINE_ROOMS = {"worker", "orchestrator"}
"""Of `crawl`: processes of their own. They share what lies beside them, which knows neither."""
MOST_MODULES = 20
TWINS = {"sqlite", "postgresql"}
"""Words in the names of modules that do the same on different platforms: their classes may have one name."""


@cache
def room_of(module: str) -> str:
    """The folder of a module, as a package."""
    return ".".join((NAME, *path_of(module).parent.relative_to(ROOT).parts))


ROOMS = sorted({room_of(module) for module in modules()} - {NAME})


def within(module: str, room: str) -> str:
    """What a module belongs to in a room: a room inside of it, or the module's own name; empty for others."""
    return module.removeprefix(f"{room}.").partition(".")[0] if module.startswith(f"{room}.") else ""


def inner_imports(room: str) -> list[tuple[str, str, str, str]]:
    """Who imports whom in a room: both parts of it, and both modules."""
    pairs = [(module, target) for module in trees() for target in imports(module)]
    found = [(within(module, room), within(target, room), module, target) for module, target in pairs]
    return [(here, there, *names) for here, there, *names in found if here and there and here != there]


def test_imports_inside_of_a_room_go_downward() -> None:
    wrong = []
    for folder, floors in FLOORS.items():
        floor = {name: number for number, names in enumerate(floors) for name in names}
        parts = {part for module in trees() if (part := within(module, f"{NAME}.{folder}"))}
        assert parts <= set(floor), f"{folder}: give {sorted(parts - set(floor))} a floor"
        for here, there, module, target in inner_imports(f"{NAME}.{folder}"):
            wrong += [f"{module} imports {target}"] if floor[there] >= floor[here] else []
    assert wrong == []


def test_worker_and_orchestrator_are_imported_by_nothing_beside_them() -> None:
    found = inner_imports(f"{NAME}.crawl")
    assert [f"{module} imports {target}" for _, there, module, target in found if there in ENGINE_ROOMS] == []


def test_a_room_has_few_modules() -> None:
    modules: dict[str, int] = defaultdict(int)
    for module in trees():
        modules[room_of(module)] += module not in {*ROOMS, NAME}
    assert {room: count for room, count in modules.items() if count > MOST_MODULES} == {}


def test_a_class_name_has_one_meaning() -> None:
    where: dict[str, list[str]] = defaultdict(list)
    for module in trees():
        for node in nodes(module):
            if isinstance(node, ast.ClassDef):
                where[node.name].append(module)
    twice = {name: modules for name, modules in where.items() if len(modules) > 1}
    twins = {name for name, modules in twice.items() if _are_twins(modules)}
    assert {name: modules for name, modules in twice.items() if name not in twins} == {}


def _are_twins(modules: list[str]) -> bool:
    names = {re.sub("|".join(TWINS), "*", module) for module in modules}
    return len(names) == 1 and len(set(modules)) == len(modules)


def imported_from(room: str) -> list[str]:
    """The modules of a room that modules outside of it import."""
    outside = [module for module in trees() if module != room and not module.startswith(f"{room}.")]
    taken = {target for module in outside for target in imports(module) if room_of(target) == room and target != room}
    return sorted(target.rpartition(".")[2] for target in taken)


def test_a_room_says_what_others_import_from_it() -> None:
    """A line of the docstring of its `__init__`: `Others import: a, b.`, or `Others import: nothing.`"""
    wrong = {}
    for room in ROOMS:
        line = f"Others import: {', '.join(imported_from(room)) or 'nothing'}."
        said = " ".join((ast.get_docstring(trees()[room]) or "").split())
        if not said.endswith(line) or said == line:
            wrong[Path(*room.split("."), "__init__.py").as_posix()] = line
    assert wrong == {}, "the last line of these docstrings, after what the room is for"
