"""A real PostgreSQL server of its own on a Unix socket, for tests and benchmarks."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

__all__ = ["Postgres", "PostgresError"]

_START_S = 30.0
_UNSAFE = ("fsync=off", "full_page_writes=off")
"""A server for tests need not survive a power cut; it survives being killed."""
_MEMORY, _ROOM = Path("/dev/shm"), 2 << 30
"""Linux keeps these files in memory, where the thousand files of a new database cost a fifth."""


class PostgresError(Exception):
    """PostgreSQL is missing, or would not start."""


class Postgres:
    """A server in a temporary directory, run by an unprivileged user: it refuses to run as root.

    `safe` has commits reach the disk, as a user's server does; without `on_disk`, its files may be in memory;
    `settings` are lines of its configuration.
    """

    def __init__(self, settings: Sequence[str] = (), *, safe: bool = False, on_disk: bool = False) -> None:
        self._on_disk = safe or on_disk
        self._settings = ("listen_addresses=", "max_connections=60", *settings, *(() if safe else _UNSAFE))
        self._process: subprocess.Popen[bytes] | None = None
        self._user = "postgres" if os.geteuid() == 0 else None

    def __enter__(self) -> Self:
        self.home = Path(tempfile.mkdtemp(prefix="postgres-", dir=None if self._on_disk else _memory()))
        try:
            if self._user:
                account = pwd.getpwnam(self._user)
                os.chown(self.home, account.pw_uid, account.pw_gid)
            flags = ("--no-sync", "--no-instructions", "--auth=trust", "--username=muniment", "--encoding=UTF8")
            self._run("initdb", "-D", str(self.home / "data"), "--locale=C", *flags)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def pid(self) -> int | None:
        """The number of its first process."""
        return self._process.pid if self._process else None

    def url(self, database: str = "postgres") -> str:
        """The URL of a database of this server."""
        return f"postgresql://muniment@/{database}?host={self.home}"

    def create(self, database: str, template: str = "template0") -> str:
        """Make a database, empty or a copy of one that nobody uses; returns its URL."""
        self._run("createdb", "-h", str(self.home), "-U", "muniment", f"--template={template}", database)
        return self.url(database)

    def dump(self, database: str) -> Path:
        """Write a backup of a database, which may be in use."""
        file = self.home / f"{database}.dump"
        self._run("pg_dump", "-h", str(self.home), "-U", "muniment", "-Fc", "-f", str(file), database)
        return file

    def restore(self, database: str, file: Path) -> None:
        """Put a backup in the place of a database that nobody uses."""
        self._run("dropdb", "-h", str(self.home), "-U", "muniment", database)
        self.create(database)
        self._run("pg_restore", "-h", str(self.home), "-U", "muniment", "-d", database, str(file))

    def start(self) -> None:
        """Start the server; it answers when this returns."""
        options = [word for line in (f"unix_socket_directories={self.home}", *self._settings) for word in ("-c", line)]
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [_program("postgres"), "-D", str(self.home / "data"), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
                user=self._user,
                group=self._user,
                extra_groups=None if self._user is None else (),
                start_new_session=True,
            )
        end = time.monotonic() + _START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise PostgresError(f"PostgreSQL did not start: {(self.home / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self, *, kill: bool = False) -> None:
        """End the server and all its connections; with `kill` as a crash does, after which it has to recover."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT if kill else signal.SIGINT)
        self._process.wait(_START_S)
        self._process = None

    def _answers(self) -> bool:
        asked = subprocess.run([_program("pg_isready"), "-h", str(self.home), "-U", "muniment", "-q"], check=False)
        return asked.returncode == 0

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [_program(program), *arguments],
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            user=self._user,
            group=self._user,
            extra_groups=None if self._user is None else (),
        )
        if done.returncode:
            raise PostgresError(f"{program}: {done.stderr.strip()}")


def _memory() -> Path | None:
    """Where files are kept in memory, if there is enough of it."""
    return _MEMORY if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM else None


def _program(name: str) -> str:
    """A program of the newest PostgreSQL that is installed; Debian and Homebrew keep them out of the PATH."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name.split(".")[0]))
    homebrew = [path for opt in ("/usr/local/opt", "/opt/homebrew/opt") for path in Path(opt).glob("postgresql@*/bin")]
    places = [*sorted(homebrew), *debian]
    found = shutil.which(name, path=os.pathsep.join([*map(str, reversed(places)), os.environ.get("PATH", "")]))
    if found is None:
        raise PostgresError(f"{name} is missing; install it with: apt-get install postgresql")
    return found
