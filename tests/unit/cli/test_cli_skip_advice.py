"""Causes: each is told with what to do about it."""

from __future__ import annotations

import pytest

from muniment.cli.display.skip_advice import skip_advice
from muniment.rules.skip_causes import BEGINNINGS, OTHER, SkipCause

CAUSES = {cause for _, cause in BEGINNINGS} | {OTHER}


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_every_cause_has_a_line_of_its_own(cause, failed):
    line = skip_advice(SkipCause(cause, 1_200, failed), "out")
    assert line.startswith(f"1,200 {'failed' if failed else 'skipped'} by ")
    assert "\n" not in line
    assert len(line) < 120
    assert ("something else" in line) is (cause == OTHER)


def test_what_to_do_is_a_command():
    assert "`muniment ignores list -o 'my out'`" in skip_advice(SkipCause("ignore", 1, False), "'my out'")
    robots = SkipCause("robots", 1, False), SkipCause("robots", 1, True)
    assert [skip_advice(one, "out").partition("; ")[2] for one in robots] == [
        "the same command with --no-robots captures them",
        "the same command with --no-robots captures them",
    ]


@pytest.mark.parametrize("failed", [False, True])
def test_what_was_given_up_is_asked_for_again_by_an_option_of_its_own(failed):
    said = skip_advice(SkipCause("dead-host", 3, failed), "out")
    assert said.endswith("; the same command with --retry-failed tries them again")
    inside = skip_advice(SkipCause("private-address", 3, failed), "out")
    assert inside.endswith(" by private addresses; the same command with --allow-private captures them")
