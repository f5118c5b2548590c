"""Sites of today's tools look in a replay as they did; MUNIMENT_SITES names more of them, or all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache

import pytest
from tests.replay.captures import FLAGS, Captured, Looked, capture, exactly, in_the_page, live, texts_in_firefox
from tests.replay.sites.table import IN_EVERY_RUN, SITES
from tests.replay.views import compare
from tests.support.chromium import Chromium

_CHOSEN = os.environ.get("MUNIMENT_SITES", "")
_NAMES = tuple(SITES) if _CHOSEN == "all" else tuple(filter(None, _CHOSEN.split(","))) or IN_EVERY_RUN
_WAYS = {"in_the_page": in_the_page, "exactly": exactly} if _CHOSEN else {"in_the_page": in_the_page}
_MOST_OFF = 0.2
_REFUSED = "Failed to register a ServiceWorker"


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    with Chromium(*FLAGS) as running:
        yield running


@pytest.fixture(scope="session")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Captured]:
    """Each site is crawled once in a process of tests."""
    return cache(lambda name: capture(SITES[name], tmp_path_factory.mktemp(name)))


@pytest.fixture(scope="session")
def looked(captured: Callable[[str], Captured], browser: Chromium) -> Callable[[str], Looked]:
    """Each live site is looked at once."""
    return cache(lambda name: live(captured(name), browser))


@pytest.mark.long
@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("way", _WAYS)
def test_a_site_is_shown_as_it_was(
    captured: Callable[[str], Captured], looked: Callable[[str], Looked], browser: Chromium, name: str, way: str
) -> None:
    replayed = _WAYS[way](captured(name), browser)
    known = {SITES[name].throws}
    for was, shown in ((looked(name).first, replayed.first), (looked(name).second, replayed.second)):
        found = compare(was, shown)
        assert found.same_text, (was.text, shown)
        assert found.off <= _MOST_OFF, (found, shown.complaints)
        thrown = [one for one in found.exceptions if _REFUSED not in one and one not in known]
        assert not thrown, (found, shown.complaints)


if _CHOSEN:

    @pytest.mark.parametrize("name", _NAMES)
    def test_firefox_shows_the_words_of_a_site(captured: Callable[[str], Captured], name: str) -> None:
        was, shown = texts_in_firefox(captured(name))
        assert was == shown
