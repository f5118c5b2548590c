"""Names of the metrics of a server, with what each says."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ["METRICS", "Metric"]


class Metric(Struct, frozen=True):
    """A metric of a server."""

    kind: Literal["gauge", "counter", "histogram"]
    labels: tuple[str, ...]
    about: str


METRICS = {
    "muniment_jobs": Metric("gauge", ("state",), "Jobs, by state."),
    "muniment_pages": Metric("gauge", ("job", "state"), "Pages of the jobs that have not ended, by state."),
    "muniment_pages_captured_total": Metric("counter", ("job",), "Captured pages."),
    "muniment_payload_bytes_total": Metric("counter", ("job",), "Bytes of payloads received."),
    "muniment_pipelines": Metric("gauge", ("state",), "Pipelines that are live, paused or away."),
    "muniment_pipeline_claimed": Metric("gauge", ("pipeline",), "Pages that a live pipeline holds."),
    "muniment_finishes_total": Metric("counter", ("result",), "Finished pages that pipelines sent to this server."),
    "muniment_sessions_ended_total": Metric("counter", ("ending",), "Sessions of pipelines that have ended."),
    "muniment_requests_total": Metric("counter", ("route", "status"), "Requests that this server answered."),
    "muniment_request_seconds": Metric("histogram", ("route",), "Time until an answer, with what it waited for."),
    "muniment_news_seconds": Metric(
        "histogram", (), "Time from a change until the last pipeline at this server asked for news after it."
    ),
    "muniment_database_up": Metric("gauge", (), "1 while the database answers, else 0."),
}
"""Every metric, by name."""
