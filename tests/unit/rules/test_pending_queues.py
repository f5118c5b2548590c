"""Which queues a pipeline takes jobs from, and who runs a job of a queue (points 46 and 47)."""

from __future__ import annotations

import pytest

from muniment.model.pipeline import Pipeline
from muniment.rules.assignment import may_run, queues_for, tags_for

NAMED = ["pending:berlin", "pending:fast", "pending:paris"]
PLAIN, MATCHED = Pipeline("berlin-1"), Pipeline("paris-1", frozenset({"fast"}), matchonly=True)
SHALLOW = Pipeline("rome-1", frozenset({"ao-only"}))


@pytest.mark.parametrize(
    ("pipeline", "queues"),
    [
        (PLAIN, ["pending:berlin", "pending", "pending-ao"]),
        (MATCHED, ["pending:fast", "pending:paris"]),
        (SHALLOW, ["pending-ao"]),
        (Pipeline("a", frozenset({"large"})), ["pending-large", "pending", "pending-ao"]),
        (Pipeline("a", frozenset({"ao-only", "large"})), ["pending-ao", "pending-large"]),
    ],
    ids=["plain", "matchonly", "ao-only", "large", "ao-only and large"],
)
def test_queues_come_in_their_order(pipeline: Pipeline, queues: list[str]) -> None:
    assert queues_for(pipeline, NAMED) == queues


def test_a_job_runs_where_it_could_have_been_taken() -> None:
    assert tags_for("pending", [PLAIN, MATCHED]) == frozenset()
    assert tags_for("pending", [PLAIN, MATCHED, SHALLOW]) == {"berlin-1"}
    assert tags_for("pending-ao", [PLAIN, MATCHED, SHALLOW]) == frozenset()
    assert tags_for("pending-large", [PLAIN]) == {"large"}
    assert tags_for("pending:rlin", [PLAIN, MATCHED]) == {"rlin", "berlin-1"}
    assert may_run(PLAIN, tags_for("pending:rlin", [PLAIN]))
    assert not may_run(MATCHED, tags_for("pending:rlin", [PLAIN]))
