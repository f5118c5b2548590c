"""The lists of `job add --fetch` and `job feed`: read here, and sent a part at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import structs

from muniment.app.inputs.seed_list import named_list
from muniment.control.fleet.backends import JobBackend
from muniment.errors import MunimentError, PlaceError, ServerLostError, UsageError
from muniment.model.network.jobs import JobSpec, JobView, LinesCall, ListLine
from muniment.model.seed import SeedLine, SeedPlace, in_shard
from muniment.model.url import url_key
from muniment.seeds.read import batches
from muniment.seeds.source import SeedSource
from muniment.settings.option_table import defaults

__all__ = ["add_list", "feed_list"]


def add_list(backend: JobBackend, spec: JobSpec, seed: str, given: Mapping[str, Any]) -> JobView:
    """Make a job and send it its list; raises UsageError, with the job's number once it is made."""
    source = _source(seed, given)
    made = backend.add(spec)
    try:
        _send(backend, made.id, source, given, 0)
    except ServerLostError as error:
        raise ServerLostError(
            f"job {made.id} has a part of its list: go on with {_remedy(made.id, seed)} ({error})"
        ) from None
    except MunimentError as error:
        raise UsageError(
            f"job {made.id} has a part of its list: {error}; go on with {_remedy(made.id, seed)}"
        ) from None
    return backend.view(made.id)


def feed_list(backend: JobBackend, job_id: int, seed: str, given: Mapping[str, Any]) -> int:
    """Send what a job lacks of its list; how many lines it has then."""
    source = _source(seed, given)
    return _send(backend, job_id, source, given, 0)


def _remedy(job_id: int, seed: str) -> str:
    return f"`muniment job feed {job_id} {seed}`"


def _source(seed: str, given: Mapping[str, Any]) -> SeedSource:
    settings = {name: given[name] for name in ("seed_format", "shard", "shards") if given.get(name) is not None}
    source = named_list(structs.replace(defaults("fetch"), seed=seed, **settings))
    if source is None:
        raise UsageError(f"the list {seed} must be a plain file, which can be read again: unpack or save it first")
    if source.path is None:
        raise UsageError(f"the list {seed} is a URL, which no server opens: download it, and give the file")
    return source


def _send(backend: JobBackend, job_id: int, source: SeedSource, given: Mapping[str, Any], at: int) -> int:
    sent = at
    for lines in _parts(source, given):
        before = sent
        sent += len(lines)
        if sent <= at:
            continue
        wanted = lines[max(0, at - before) :]
        try:
            at = backend.lines(job_id, LinesCall(at=max(at, before), lines=wanted)).at
        except PlaceError as error:
            # some came with an earlier command, or with an answer that was lost
            at = error.at
            if at < before:
                raise UsageError(
                    f"job {job_id} has {at:,} lines, fewer than were sent: another command feeds it"
                ) from None
            if at < sent:
                at = backend.lines(job_id, LinesCall(at=at, lines=lines[at - before :])).at
    if at > sent:
        raise UsageError(f"job {job_id} has {at:,} lines already, and this list has {sent:,}: it is another list")
    return backend.lines(job_id, LinesCall(at=at, end=True)).at


def _parts(source: SeedSource, given: Mapping[str, Any]) -> Iterator[list[ListLine]]:
    shard, shards = given.get("shard") or 0, given.get("shards") or 1
    for batch in batches(source, SeedPlace()):
        # of a line that is not a URL nothing is sent: a fetch leaves it out, too
        mine = [line for line in batch.lines if shards == 1 or in_shard(url_key(line.url), shard, shards)]
        yield [_line(line) for line in mine]


def _line(line: SeedLine) -> ListLine:
    if line.account is not None:
        raise UsageError(
            f"line {line.number} has an account, which every reader of the tracker would see: give it to "
            "`muniment pipeline --auth-file`"
        )
    prior = line.prior
    return ListLine(
        url=line.url,
        digest=prior.digest,
        etag=prior.etag,
        last_modified=prior.last_modified,
        meta_json=line.meta_json,
    )
