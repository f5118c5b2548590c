"""Hooks of a job: the pages that wait for them, their tries, and the files that they left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sqlalchemy import bindparam, false, func, select

from muniment.model.hooks.runs import CapturedPage, HookArtifact, HookBatch, HookPage, HookResult, PriorTry
from muniment.tracker.db.database import BatchInsert, Database, Prepared, Row, retrying_transaction
from muniment.tracker.schema.hooks import WAITING, hook_files, hook_pages, hook_runs

__all__ = ["HookStore"]

_PAGE = ("url", "depth", "status", "content_type", "fetched_at", "warc_file", "warc_offset", "digest")
_RESULT = (
    "url", "event", "plugin", "hook", "place", "background", "attempt", "status", "output_str", "output_json", "error",
    "exit_code", "timed_out", "started_at", "duration_ms", "process_id", "directory", "files", "bytes", "records",
    "bad_lines", "links",
)  # fmt: skip
_FILE = ("url", "plugin", "path", "bytes", "sha256", "media_type", "link")
_QUEUE = BatchInsert(hook_pages, "job_id", "page_key", "page_id", *_PAGE, "title", "tags", "done", conflict="IGNORE")
_OF_JOB = hook_pages.c.job_id == bindparam("job")
_COUNT = Prepared(select(func.count()).select_from(hook_pages).where(_OF_JOB, WAITING), "job")
_WAITING = Prepared(
    select(*(hook_pages.c[name] for name in ("page_id", "page_key", *_PAGE, "title", "tags")))
    .where(_OF_JOB, WAITING)
    .order_by(hook_pages.c.fetched_at, hook_pages.c.page_key)
    .limit(bindparam("most")),
    "job", "most",
)  # fmt: skip
_DONE = Prepared(
    hook_pages.update()
    .where(_OF_JOB, hook_pages.c.page_key == bindparam("key"))
    .values(title=bindparam("t"), tags=bindparam("g"), done=bindparam("d")),
    "t", "g", "d", "job", "key",
)  # fmt: skip
_AGAIN = Prepared(
    hook_pages.update().where(_OF_JOB, hook_pages.c.page_key == bindparam("key")).values(done=false()), "job", "key"
)
_WAITS = Prepared(
    select(hook_pages.c.page_id).where(_OF_JOB, WAITING, hook_pages.c.page_key == bindparam("key")), "job", "key"
)
_RUNS_OF = Prepared(
    select(*(hook_runs.c[name] for name in ("event", "plugin", "hook", "attempt", "status", "error")))
    .where(hook_runs.c.job_id == bindparam("job"), hook_runs.c.page_key == bindparam("key"))
    .order_by(hook_runs.c.attempt),
    "job", "key",
)  # fmt: skip
_KEEP = BatchInsert(hook_runs, *hook_runs.c.keys(), conflict="REPLACE")
_FORGET_FILES = Prepared(
    hook_files.delete().where(
        hook_files.c.job_id == bindparam("job"),
        hook_files.c.page_key == bindparam("key"),
        hook_files.c.plugin == bindparam("plugin"),
    ),
    "job", "key", "plugin",
)  # fmt: skip
_KEEP_FILES = BatchInsert(hook_files, *hook_files.c.keys(), conflict="REPLACE")
_BATCH = 1000


class HookStore:
    """The hooks of one job. `wanted` says of which URLs pages wait."""

    def __init__(self, db: Database, job_id: int, wanted: Callable[[str], bool] = lambda _: True) -> None:
        self._db, self._job_id, self.wants = db, job_id, wanted
        self.db, self.job_id = db, job_id
        self._none = False

    def queue(self, pages: Iterable[CapturedPage]) -> None:
        """Have pages wait for their hooks, in the transaction of their finish; a page waits once."""
        rows = [
            (
                self._job_id, page.key, page.page_id, page.url, page.depth, page.status, page.content_type,
                page.fetched_at, page.warc_file, page.warc_offset, page.digest, "", "", False,
            )
            for page in pages
            if self.wants(page.url)
        ]  # fmt: skip
        self._db.many(_QUEUE, rows)
        self._none = False

    @retrying_transaction
    def add(self, pages: Sequence[CapturedPage], *, again: bool = False) -> None:
        """The same in a transaction of its own; `again`: also pages whose hooks have run."""
        with self._db.transaction():
            self.queue(pages)
            if again:
                self._db.many(_AGAIN, [(self._job_id, page.key) for page in pages])

    def waiting(self) -> int:
        """How many pages wait for their hooks."""
        return int(self._db.rows(_COUNT, (self._job_id,))[0][0])

    @property
    def any_waiting(self) -> bool:
        """Whether a page waits for its hooks."""
        self._none = self._none or not self._db.rows(_WAITING, (self._job_id, 1))
        return not self._none

    def waits(self, key: bytes) -> bool:
        """Whether a page waits for its hooks, or they run now."""
        return bool(self._db.rows(_WAITS, (self._job_id, key)))

    def due(self, most: int, held: set[bytes]) -> list[HookPage]:
        """The eldest pages that wait, but for those whose hooks run now."""
        rows = self._db.rows(_WAITING, (self._job_id, most + len(held)))
        return [self._page(row) for row in rows if bytes(row[1]) not in held][:most]

    def _page(self, row: Row) -> HookPage:
        page_id, key, *fields, title, tags = row
        captured = CapturedPage(page_id, bytes(key), *fields)
        return HookPage(captured, title, tuple(filter(None, tags.split("\n"))), self.prior(bytes(key)))

    def prior(self, key: bytes) -> tuple[PriorTry, ...]:
        """The last try of each hook of a page; of the crawl for an empty key."""
        last: dict[tuple[str, str, str], PriorTry] = {}
        for row in self._db.rows(_RUNS_OF, (self._job_id, key)):
            last[row[0], row[1], row[2]] = PriorTry(*row)
        return tuple(last.values())

    @retrying_transaction
    def keep(self, batch: HookBatch) -> None:
        """Keep what hooks have done, in one transaction."""
        with self._db.transaction():
            self.keep_within(batch)

    def keep_within(self, batch: HookBatch) -> None:
        """The same, within the caller's transaction."""
        job, key = self._job_id, batch.key
        self._db.many(_KEEP, [(job, key, *(_of(result))) for result in batch.results])
        self._db.many(_FORGET_FILES, [(job, key, plugin) for plugin in batch.artifacts])
        files = [(job, key, *_file(one)) for listed in batch.artifacts.values() for one in listed]
        for at in range(0, len(files), _BATCH):
            self._db.many(_KEEP_FILES, files[at : at + _BATCH])
        if (end := batch.end) is not None:
            self._db.many(_DONE, [(end.title, "\n".join(end.tags), end.done, job, end.key)])

    def results(self) -> Iterator[list[HookResult]]:
        """All tries, page by page, some at a time."""
        c = hook_runs.c
        ordered = select(*(c[name] for name in _RESULT)).where(c.job_id == self._job_id)
        found = self._db.connection.execute(ordered.order_by(c.page_key, c.started_at, c.place, c.hook, c.attempt))
        for rows in found.partitions(_BATCH):
            yield [_result(tuple(row)) for row in rows]

    def artifacts(self) -> Iterator[list[HookArtifact]]:
        """All files, some at a time."""
        c = hook_files.c
        listed = select(*(c[name] for name in _FILE)).where(c.job_id == self._job_id)
        found = self._db.connection.execute(listed.order_by(c.page_key, c.plugin, c.path))
        for rows in found.partitions(_BATCH):
            yield [HookArtifact(*row) for row in rows]

    def of_page(self, key: bytes) -> tuple[list[HookResult], list[HookArtifact]]:
        """The tries of the hooks of a page in their order, and the files that they left."""
        runs, files = hook_runs.c, hook_files.c
        tried = select(*(runs[name] for name in _RESULT)).where(runs.job_id == self._job_id, runs.page_key == key)
        left = select(*(files[name] for name in _FILE)).where(files.job_id == self._job_id, files.page_key == key)
        rows = self._db.connection.execute(tried.order_by(runs.started_at, runs.place, runs.hook, runs.attempt)).all()
        found = self._db.connection.execute(left.order_by(files.plugin, files.path)).all()
        return [_result(tuple(row)) for row in rows], [HookArtifact(*row) for row in found]

    @property
    def used(self) -> bool:
        """Whether hooks have run or wait."""
        found = select(hook_pages.c.page_id).where(hook_pages.c.job_id == self._job_id).limit(1)
        ran = select(hook_runs.c.place).where(hook_runs.c.job_id == self._job_id).limit(1)
        return any(self._db.connection.execute(one).first() is not None for one in (found, ran))


def _of(one: HookResult) -> Row:
    return (
        one.event, one.plugin, one.hook, one.attempt, one.url, one.order, one.background, one.status, one.output_str,
        one.output_json, one.error, one.exit_code, one.timed_out, one.started_at, one.duration_ms, one.process_id,
        one.directory, one.files, one.bytes, one.records, one.bad_lines, one.links,
    )  # fmt: skip


def _result(row: Row) -> HookResult:
    names = ["order" if name == "place" else name for name in _RESULT]
    values = dict(zip(names, row, strict=True))
    return HookResult(**{**values, "background": bool(row[5]), "timed_out": bool(row[12])})


def _file(one: HookArtifact) -> Row:
    return one.plugin, one.path, one.url, one.bytes, one.sha256, one.media_type, one.link
