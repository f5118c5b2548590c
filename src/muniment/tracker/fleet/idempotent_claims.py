"""Idempotent claims: a claim has a number, and what it was given is kept with it: sent again, it is given the same."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from sqlalchemy import bindparam, literal_column, select

from muniment.errors import UsageError, WrongAskError
from muniment.model.network.sessions import ClaimCall
from muniment.model.page import first_claim
from muniment.model.pipeline import Session
from muniment.rules.worker_deaths import PROOF, SUSPECT
from muniment.tracker.db.database import Asked, Database, Prepared, Row
from muniment.tracker.fleet.sessions import check_standing, numbers
from muniment.tracker.schema.pipelines import sessions
from muniment.tracker.schema.tables import CLAIMED, jobs, pages

__all__ = ["ClaimGrant", "NumberedClaim", "asking", "check_call", "keep_ask", "numbered_claim"]

_MOST_PAGES = 10_000
"""Of one claim, over all slots."""
_ASKING = Prepared(
    select(
        sessions.c.pipeline_id, sessions.c.ending, sessions.c.instance, sessions.c.slots, sessions.c.paused,
        sessions.c.claims, sessions.c.ask, sessions.c.handed_out,
    )
    .where(sessions.c.epoch == bindparam("epoch"))
    .with_for_update(),
    "epoch",
)  # fmt: skip
_UNFINISHED = select(jobs.c.id).where(jobs.c.state != literal_column("'FINISHED'"))
_SUSPECT = Prepared(
    select(pages.c.id)
    .where(pages.c.job_id.in_(_UNFINISHED), CLAIMED)
    .where(pages.c.claim_id.between(bindparam("first"), bindparam("last")))
    .where(pages.c.deaths.between(literal_column(str(SUSPECT)), literal_column(str(PROOF - 1))))
    .limit(literal_column("1")),
    "first", "last",
)  # fmt: skip
_KEEP = Prepared(
    sessions.update()
    .where(sessions.c.epoch == bindparam("epoch"))
    .values(claims=sessions.c.claims + bindparam("count"), ask=bindparam("ask"), handed_out=bindparam("what")),
    "count", "ask", "what", "epoch",
)  # fmt: skip


class ClaimGrant(Struct, frozen=True, array_like=True):
    """What a slot was given by a claim."""

    slot: int
    job: int
    after: int
    """The number before the first that its claims may have."""
    most: int
    """How many numbers there are."""


class NumberedClaim(Struct, frozen=True):
    """A claim that may be carried out."""

    session: Session
    after: int
    """The number before the first that its claims may have."""
    ask: int
    """The number of the claim before, or of this one when it was not given anything yet."""
    before: list[ClaimGrant]
    """What it was given when it came before."""
    paused: bool
    suspect: bool
    """The session has a page that gets nothing beside it."""


def check_call(call: ClaimCall) -> None:
    """Raise UsageError for wants that make no sense."""
    slots = [want.slot for want in call.want]
    if len(set(slots)) != len(slots) or any(want.pages < 0 for want in call.want):
        raise UsageError("a claim wants pages for each slot once, and never fewer than 0")
    if sum(want.pages for want in call.want) > _MOST_PAGES:
        raise UsageError(f"a claim is for at most {_MOST_PAGES:,} pages")


def asking(epoch: int) -> list[Asked]:
    """What has to be read of a session for a claim (`numbered_claim`), in a transaction; it cannot end before."""
    return [(_ASKING, (epoch,)), (_SUSPECT, numbers(epoch))]


def numbered_claim(answers: Sequence[list[Row]], pipeline: str, epoch: int, call: ClaimCall) -> NumberedClaim:
    """A claim of a session. Raises NotFoundError, SessionEndedError, or WrongAskError."""
    rows, suspect = answers
    check_standing(pipeline, epoch, rows)
    _, _, instance, slots, paused, claims, ask, handed_out = rows[0]
    if call.ask < 1 or call.ask not in (ask, ask + 1):
        raise WrongAskError(
            f"claim {call.ask} comes after claim {ask}: ask for {ask} again, or for {ask + 1}", int(ask)
        )
    before = msgspec.json.decode(handed_out, type=list[ClaimGrant]) if handed_out and call.ask == ask else []
    session = Session(epoch, pipeline, str(instance), int(slots))
    if any(not 0 <= want.slot < session.slots for want in call.want):
        raise UsageError(f"the slots of this session are 0 to {session.slots - 1}")
    return NumberedClaim(session, first_claim(epoch) + int(claims), int(ask), before, bool(paused), bool(suspect))


def keep_ask(db: Database, claim: NumberedClaim, call: ClaimCall, given: list[ClaimGrant]) -> None:
    """Keep what a claim is given, within its transaction; one that is given nothing may be asked again for more."""
    if not given and claim.ask == call.ask:
        return
    what = msgspec.json.encode(given).decode() if given else ""
    db.many(_KEEP, [(sum(one.most for one in given), call.ask, what, claim.session.epoch)])
