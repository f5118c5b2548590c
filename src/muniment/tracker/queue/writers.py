"""Writers: other processes that write the same job. What they changed is read at the beginning of each batch."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import bindparam, select

from muniment.rules.rule_engine import Ruleset
from muniment.settings.option_table import Settings
from muniment.tracker.db.database import Asked, Database, Prepared, Row
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.audit import settings_age
from muniment.tracker.schema.cookies import cookies
from muniment.tracker.schema.tables import jobs as jobs_table

__all__ = ["WriterChanges", "Writers"]

_HERE = select(
    jobs_table.c.state,
    jobs_table.c.settings_age,
    jobs_table.c.sites_age,
    select(cookies.c.job_id).where(cookies.c.job_id == jobs_table.c.id).exists(),
)
_LOOK = Prepared(_HERE.where(jobs_table.c.id == bindparam("job")), "job")


class WriterChanges(Struct, frozen=True):
    """What has to be read again; nothing in a database with one writer."""

    sites: bool = False
    cookies: bool = False
    ruleset: Ruleset | None = None
    tries: int = 0
    """Those in force now; 0: as before."""
    settings: Settings | None = None
    """Those in force now, when something was changed."""


_NOTHING = WriterChanges()


class Writers:
    """Watches one job for what others changed."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id = db, job_id
        self.state = ""
        """Of the job, when it was looked at last."""
        self._ages = (-1, -1)

    def settings_age(self) -> int:
        """How often the job was changed, as the last look saw it."""
        return self._ages[0] if self._ages[0] >= 0 else settings_age(self._db, self._job_id)

    def look(self) -> WriterChanges:
        """See what was changed since the last look, within the caller's transaction."""
        return self.seen(self._db.several(self.asked()))

    def asked(self) -> list[Asked]:
        """What a look reads, for who reads more at the same time."""
        return [(_LOOK, (self._job_id,))] if self._db.shared else []

    def seen(self, answers: list[list[Row]]) -> WriterChanges:
        """See what was changed, by the answers to what was asked."""
        if not answers:
            return _NOTHING
        self.state, *ages, any_cookies = answers[0][0]
        before, self._ages = self._ages, (ages[0], ages[1])
        sites = self._ages[1] != before[1]
        if self._ages[0] == before[0]:
            return WriterChanges(sites, any_cookies)
        version, rules = jobs.latest_rules(self._db, self._job_id)
        settings = jobs.settings_of(jobs.load_job(self._db, self._job_id))
        ruleset = jobs.ruleset_of(self._db, self._job_id, version, rules)
        return WriterChanges(sites, any_cookies, ruleset, settings.tries, settings)
