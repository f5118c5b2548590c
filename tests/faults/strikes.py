"""Strikes: what a round does to a crawl, and when. All of it is drawn from the round's seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

BAD_MINUTES = {"away": 2, "gateway": 2, "throttle": 2, "robots": 2}
"""What a server does to all who ask; each kind with its weight."""
KINDS = {"kill": 6, "freeze": 3, "disk": 3, "refuse": 1, "reset": 2, "stall": 2, "cut": 2, **BAD_MINUTES}
NETWORK = frozenset({"refuse", "reset", "stall", "cut", "away", "gateway", "throttle"})
"""What may cost tries."""
ROLES = ("orchestrator", "worker", "index", "all")
SILENCE_S = 3.0
"""After so long without a word a worker is replaced in these crawls; a minute is the default."""
_MINUTE_S = (1.0, 6.0)
"""How long a bad minute may last here."""
_FIRST = 5
"""Requests before the network may be struck: a host that never answered is given up sooner than one that did."""


@dataclass(frozen=True)
class Strike:
    """One blow."""

    kind: str
    after: int
    """Requests that have passed before it, over all runs of the round."""
    delay_s: float
    """And so much later."""
    who: str = ""
    """Whom it hits, of `ROLES`; nobody by name when it hits the disk or the network."""
    lasts_s: float = 0.0
    amount: int = 0
    """Bytes left free on the disk; responses cut; seconds of Retry-After, 0 for none."""


@dataclass(frozen=True)
class Script:
    """All that a round does, which is the same for the same seed and site."""

    seed: int
    command: str
    """`crawl` or `fetch`."""
    options: tuple[str, ...]
    strikes: tuple[Strike, ...]

    def of(self, *kinds: str) -> list[Strike]:
        """The strikes of some kinds."""
        return [strike for strike in self.strikes if strike.kind in kinds]


def undisturbed() -> Script:
    """A round in which nothing happens."""
    return Script(0, "crawl", ("--workers", "2"), ())


def draw(seed: int, pages: int) -> Script:
    """The script of a round over a site of so many pages."""
    chance = random.Random(seed)
    command = chance.choices(("crawl", "fetch"), (3, 1))[0]
    kinds = chance.choices(list(KINDS), list(KINDS.values()), k=chance.randint(1, 4))
    strikes = sorted((_strike(kind, pages, chance) for kind in kinds), key=lambda strike: strike.after)
    options = _options(kinds, chance)
    if "robots" in kinds:
        options += ("--robots",)
    return Script(seed, command, options, tuple(strikes))


def _options(kinds: list[str], chance: random.Random) -> tuple[str, ...]:
    options = ["--workers", str(chance.randint(1, 2)), "--warc-size", chance.choice(("150k", "1GiB"))]
    # without a stall no try may be lost, even when the whole machine stands still for minutes
    options += ["--timeout", chance.choice(("1", "30")) if "stall" in kinds else "900", "--connect-timeout", "900"]
    if chance.random() < 0.5:
        options += ["--min-free", "0"]
    return tuple(options)


def _strike(kind: str, pages: int, chance: random.Random) -> Strike:
    after, delay_s = _moment(kind, pages, chance)
    match kind:
        case "kill":
            return Strike(kind, after, delay_s, chance.choice(ROLES))
        case "freeze":
            long = chance.random() < 0.1
            lasts_s = SILENCE_S + 1 if long else chance.uniform(0.05, 0.8)
            return Strike(kind, after, delay_s, chance.choice(ROLES), lasts_s)
        case "disk":
            return Strike(
                kind,
                after,
                delay_s,
                lasts_s=chance.uniform(0.1, 1.0),
                amount=chance.choice((0, 50_000, 300_000, 1_000_000)),
            )
        case "cut":
            return Strike(kind, after, delay_s, amount=chance.randint(1, 4))
        case "reset":
            return Strike(kind, after, delay_s)
        case "throttle":
            return Strike(kind, after, delay_s, lasts_s=chance.uniform(*_MINUTE_S), amount=chance.choice((0, 0, 1, 2)))
        case "away" | "gateway" | "robots":
            return Strike(kind, after, delay_s, lasts_s=chance.uniform(*_MINUTE_S))
        case _:
            return Strike(kind, after, delay_s, lasts_s=chance.uniform(0.05, 1.2))


def _moment(kind: str, pages: int, chance: random.Random) -> tuple[int, float]:
    """Mostly in the middle of the work; now and then while a run opens the directory, or ends.

    robots.txt is asked for first of all, and then not for a day.
    """
    if kind == "robots":
        return 0, 0.0
    when = chance.choices(("begin", "middle", "end"), (1, 8, 2))[0]
    if kind in NETWORK or when == "middle":
        return chance.randrange(_FIRST, pages), chance.uniform(0, 0.05)
    if when == "begin":
        return 0, chance.uniform(0, 0.8)
    return pages, chance.uniform(0, 0.4)
