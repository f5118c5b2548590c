"""A tracker's PostgreSQL server that is restarted, or killed, in the middle of a crawl: nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broken_machine import PACE, a_site, events, is_whole, wait_for
from tests.support.postgres import Postgres


@pytest.mark.parametrize("kill", [False, True])
def test_a_crawl_outlasts_a_restart_of_its_server(muniment: Callable[..., Any], tmp_path: Path, kill: bool) -> None:
    out = tmp_path / "out"
    with Postgres() as server, a_site(after=0.05) as site:
        command = ["crawl", site.url, "-o", str(out), *map(str, PACE), "--quiet", "--database", server.url()]
        run = muniment.start(*command)  # type: ignore[attr-defined]
        wait_for(lambda: len(events(out, "capture")) > 3, "some pages")
        server.stop(kill=kill)
        server.start()
        said = run.communicate(timeout=120)
        assert (run.returncode, said[0]) == (0, "")
        assert [line for line in said[1].splitlines() if "is gone: waiting up to" not in line] == []
        is_whole(muniment, out, site)
        assert max(site.counts().values()) == 1, "no page was asked for twice"
