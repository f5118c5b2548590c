"""Kinds of events are in one module, and every line of the log has a kind of its own."""

from __future__ import annotations

import ast

from source_tree import nodes, trees

from muniment.model.event import Event, LogEvent
from muniment.model.network.pipeline_events import PipelineEvent

KINDS = {
    *(
        "start",
        "capture",
        "fail",
        "skip",
        "drop",
        "pause",
        "resume",
        "worker",
        "stop",
        "finish",
        "change",
        "damaged",
        "hook",
    ),
}

KINDS_OF_PIPELINES = {
    *("start", "session", "lost", "found", "refused", "slot", "pause", "resume", "stop", "finish"),
}


def test_kinds_of_events_are_in_one_module() -> None:
    bases = {Event.__name__, LogEvent.__name__}
    found = {
        module
        for module in trees()
        for node in nodes(module)
        if isinstance(node, ast.ClassDef) and bases & {getattr(base, "id", "") for base in node.bases}
    }
    assert found == {"muniment.model.event", "muniment.model.network.pipeline_events"}


def test_each_kind_of_line_has_a_name_of_its_own() -> None:
    kinds = LogEvent.__subclasses__()
    assert {kind.__struct_config__.tag for kind in kinds} == KINDS
    assert len(kinds) == len(KINDS)
    assert all(kind.__struct_config__.frozen for kind in (*kinds, *Event.__subclasses__()))


def test_each_kind_of_line_of_a_pipeline_has_a_name_of_its_own() -> None:
    kinds = PipelineEvent.__subclasses__()
    assert {kind.__struct_config__.tag for kind in kinds} == KINDS_OF_PIPELINES
    assert len(kinds) == len(KINDS_OF_PIPELINES)
    assert all(kind.__struct_config__.frozen for kind in kinds)
