"""Causes: each is told with what to do about it."""

from __future__ import annotations

import pytest

from muniment.cli.display.skip_advice import skip_advice
from muniment.rules.skip_causes import BEGINNINGS, OTHER

CAUSES = {cause for _, cause in BEGINNINGS} | {OTHER}


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_every_cause_has_a_line_of_its_own(cause, failed):
    line = skip_advice(cause, 1_200, "out", failed=failed)
    if failed and cause == OTHER:
        assert line == "", "errors are counted elsewhere"
        return
    assert line.startswith(f"1,200 {'failed' if failed else 'skipped'} by ")
    assert "\n" not in line
    assert len(line) < 120
    assert ("something else" in line) is (cause == OTHER)


def test_what_to_do_is_a_command():
    assert "`muniment ignores list -o 'my out'`" in skip_advice("ignore", 1, "'my out'", failed=False)
    said = [skip_advice("robots", 1, "out", failed=failed) for failed in (False, True)]
    assert [one.partition("; ")[2] for one in said] == [
        "the same command with --no-robots captures them",
        "the same command with --no-robots captures them",
    ]


@pytest.mark.parametrize("failed", [False, True])
def test_what_was_given_up_is_asked_for_again_by_an_option_of_its_own(failed):
    said = skip_advice("dead-host", 3, "out", failed=failed)
    assert said.endswith("; the same command with --retry-failed tries them again")
    inside = skip_advice("private-address", 3, "out", failed=failed)
    assert inside.endswith(" by private addresses; the same command with --allow-private captures them")
