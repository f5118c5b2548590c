"""A crawl or a fetch on this machine: its directories and locks, and its first worker, which gets ready at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from muniment.app.processes import open_book
from muniment.app.request import Request, Taken, Watch, output_directory
from muniment.app.traces import unless_refused
from muniment.control.credentials import crawl_credentials, list_credentials
from muniment.control.place import tracker_place
from muniment.control.privacy import is_private, keep_private, make_private
from muniment.control.secrets import Secrets, holds_secrets, read_secrets
from muniment.errors import MunimentError
from muniment.procs.book import Book
from muniment.procs.launch import Launched, launch_worker
from muniment.rules.credentials import Credentials
from muniment.settings import Settings

if TYPE_CHECKING:
    from muniment.crawl.progress import FinishedBefore, Summary
    from muniment.seeds.source import Source

__all__ = ["begun"]


@contextmanager
def begun(request: Request) -> Iterator[Callable[[Watch], Summary | FinishedBefore]]:
    """Take the directory of a job, and launch its first worker; yields what runs or resumes the job in it.

    That gets a `watch`, which it shows a snapshot four times a second, and returns the summary, or that the job had
    finished before. What the caller imports meanwhile costs no time, for the worker has as much to import. Raises
    MunimentError.
    """
    settings = request.settings
    secrets = read_secrets(settings)
    source = _list_of(settings)
    credentials = _credentials(request, secrets, source)
    out = output_directory(settings)
    private = credentials.secret or holds_secrets(settings) or is_private(out)
    if private:
        keep_private()
    with unless_refused() as traces:
        traces.make_directory(out)
        place = tracker_place(out, Path(settings.state) if settings.state else None, settings.database)
        traces.make_directory(place.directory)
        locks = traces.lock(out, place.directory)
        if private:
            make_private(out, place.directory)
        state = None if place.directory.resolve() == out.resolve() else place.directory
        with _launched(open_book(state, place.database, "cli", "orchestrator"), locks) as (book, first, ended):

            def run(watch: Watch) -> Summary | FinishedBefore:
                from muniment.app.run import run_locked  # noqa: PLC0415

                taken = Taken(
                    request=request,
                    secrets=secrets,
                    credentials=credentials,
                    private=private,
                    source=source,
                    out=out,
                    place=place,
                    locks=tuple(locks),
                    book=book,
                    first=first,
                )
                done = run_locked(taken, watch)
                ended(done.exit_code)
                return done

            yield run


@contextmanager
def _launched(book: Book, locks: list[int]) -> Iterator[tuple[Book, Launched, Callable[[int], None]]]:
    """A first worker, and what takes in the exit code that the book is to note in the end."""
    first, codes = None, [1]
    try:
        first = launch_worker(*locks, book=book)
        yield book, first, codes.append
    except MunimentError as error:
        codes.append(error.exit_code)
        raise
    except KeyboardInterrupt:
        codes.append(3)
        raise
    finally:
        if first is not None:
            _discard(first)
        book.leave(codes[-1])


def _list_of(settings: Settings) -> Source | None:
    if not settings.seed:
        return None
    from muniment.control.seed_list import named_list  # noqa: PLC0415  (a crawl needs none of it)

    return named_list(settings)


def _credentials(request: Request, secrets: Secrets, source: Source | None) -> Credentials:
    """What is given for the requests, as far as that can be said before a stream is read."""
    if source is None:
        return crawl_credentials(secrets, request.urls, request.accounts)
    return list_credentials(secrets, source, request.accounts)


def _discard(first: Launched) -> None:
    """End the worker in case nobody took it in; it holds the lock."""
    first.channel.close()
    first.process.kill()
    first.process.wait()
