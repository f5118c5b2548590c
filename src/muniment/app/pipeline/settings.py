"""The settings of a pipeline, and what those of a job become on its machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from muniment.app.inputs.secrets import Secrets
from muniment.http.added_headers import given_header
from muniment.http.credentials import Credentials
from muniment.remote.credentials import ServerAddress
from muniment.remote.job import JobTermsInForce
from muniment.settings.option_table import Settings

__all__ = ["PipelineSettings"]

_OF_MACHINE = (
    "warc_size", "min_free", "proxy", "auth_file", "allow_private",
    "browser_path", "tabs", "browser_memory",
)  # fmt: skip


class PipelineSettings(Struct, frozen=True, kw_only=True):
    """How a pipeline works."""

    address: ServerAddress
    out: Path
    slots: int
    machine: Settings
    """Settings with what the command line says of this machine; the rest is at its defaults."""
    given: frozenset[str]
    """The settings that were given."""
    secrets: Secrets
    command_line: str
    """For warcinfo records, secrets masked."""
    idle_s: float | None = None
    """It ends when it has had no page for so long."""
    lost_s: float | None = None
    """It ends when no server has answered for so long."""

    def settings_for(self, job: JobTermsInForce, out: Path, name: str, number: int) -> Settings:
        """The settings of a job in a directory of this pipeline, by its name and the number of the job."""
        machine, own = self.machine, job.settings
        laid: dict[str, Any] = {
            field: getattr(machine, field) for field in ("workers", "inflight") if field in self.given
        }
        for field in _OF_MACHINE:
            laid[field] = getattr(machine, field)
        return structs.replace(
            own,
            out=str(out),
            run_id="",
            state=None,
            database=None,
            prefix=machine.prefix if "prefix" in self.given else f"{name}-{number}",
            header=(*own.header, *machine.header),
            cookies=None,
            # the server counts pages over all pipelines
            max_pages=None,
            max_bytes=None,
            max_time=None,
            # jobs of ArchiveBot's queues are fetched so everywhere; no other job can ask for it
            insecure=machine.insecure or own.insecure,
            **laid,
        )

    def credentials_for(self, job: JobTermsInForce) -> Credentials:
        """What is given for the requests of a job: its own headers, and this pipeline's headers and accounts."""
        headers = (*map(given_header, job.settings.header), *self.secrets.headers)
        given = Credentials(headers, self.secrets.accounts)
        if not given.secret:
            return given
        safe = all(origin.startswith("https:") for origin in job.origins)
        return structs.replace(given, starts=job.origins, safe=safe)
