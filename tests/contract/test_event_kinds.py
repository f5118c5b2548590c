"""Kinds of events are in one module, and every line of the log has a kind of its own."""

from __future__ import annotations

import ast

from source_tree import trees

from muniment.model.event import Event, LogEvent, PipelineEvent

PIPELINE_KINDS = {"start", "session", "lost", "found", "refused", "slot", "pause", "resume", "stop", "finish"}
KINDS = {"start", "capture", "fail", "skip", "drop", "pause", "resume", "worker", "stop", "finish", "change", "damaged"}


def test_kinds_of_events_are_in_one_module() -> None:
    bases = {Event.__name__, LogEvent.__name__, PipelineEvent.__name__}
    found = {
        module
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and bases & {getattr(base, "id", "") for base in node.bases}
    }
    assert found == {"muniment.model.event"}


def test_each_kind_of_line_has_a_name_of_its_own() -> None:
    kinds = [kind for kind in LogEvent.__subclasses__() if kind is not PipelineEvent]
    for found, names in ((kinds, KINDS), (PipelineEvent.__subclasses__(), PIPELINE_KINDS)):
        assert {kind.__struct_config__.tag for kind in found} == names
        assert len(found) == len(names)
    assert all(kind.__struct_config__.frozen for kind in (*kinds, *Event.__subclasses__()))
