"""Changes of a crawl's settings and patterns: as asked for, and as carried out. They travel as lines of JSON."""

from __future__ import annotations

from msgspec import Struct

from muniment.model.job import JobTerms
from muniment.model.rule import Rule

__all__ = [
    "GUARDIAN",
    "AbortJob",
    "AddIgnore",
    "AddSet",
    "AmendPatterns",
    "Change",
    "ChangeMade",
    "ChangeReply",
    "FailJob",
    "JobRequest",
    "PauseJob",
    "Removal",
    "RemoveIgnore",
    "RemoveSet",
    "ResumeJob",
    "RuleChange",
    "SetNice",
    "SetRules",
    "SetTerms",
    "SetValues",
    "StashPages",
    "UnstashPages",
]  # fmt: skip


GUARDIAN = "muniment"
"""Who changes what guards change."""


class JobRequest(Struct, frozen=True, kw_only=True):
    """A change that somebody asks for."""

    age: int | None = None
    """How many changes of the job the asker knew: of those after them, one that is this one is a repeat's."""


class SetValues(JobRequest, frozen=True, tag=True):
    """New values for settings."""

    who: str
    values: tuple[tuple[str, str], ...]
    """Name and value, as written."""


class AddIgnore(JobRequest, frozen=True, tag=True):
    """One more ignore pattern."""

    who: str
    pattern: str


class RemoveIgnore(JobRequest, frozen=True, tag=True):
    """An ignore pattern is to go."""

    who: str
    pattern: str


class AddSet(JobRequest, frozen=True, tag=True):
    """All patterns of a built-in ignore set."""

    who: str
    name: str


class RemoveSet(JobRequest, frozen=True, tag=True):
    """A whole ignore set is to go."""

    who: str
    name: str


class AmendPatterns(JobRequest, frozen=True, tag=True):
    """Several ignore patterns more and fewer, as far as that is not so already."""

    who: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class SetRules(JobRequest, frozen=True, tag=True):
    """Other rules in place of those in force; the patterns stay."""

    who: str
    rules: tuple[Rule, ...]


class SetNice(JobRequest, frozen=True, tag=True):
    """Another nice value for pages of a host, or whose URLs begin so, or both."""

    who: str
    host: str
    prefix: str
    nice: int | None
    """None: what was said of just these before holds no more."""


class SetTerms(JobRequest, frozen=True, tag=True):
    """Other terms beside settings and rules."""

    who: str
    terms: JobTerms


class AbortJob(JobRequest, frozen=True, tag=True):
    """An end of the job: nothing more of it is handed out."""

    who: str


class FailJob(JobRequest, frozen=True, tag=True):
    """An end of the job, which has failed for a reason that only an operator knows."""

    who: str
    reason: str


class PauseJob(JobRequest, frozen=True, tag=True):
    """A pause: nothing more of the job is fetched until it is resumed."""

    who: str


class ResumeJob(JobRequest, frozen=True, tag=True):
    """A paused or aborted job is to go on."""

    who: str


class StashPages(JobRequest, frozen=True, tag=True):
    """Pages that wait are put aside: of a host, or whose URLs begin so, or both; without either all."""

    who: str
    host: str = ""
    prefix: str = ""


class UnstashPages(JobRequest, frozen=True, tag=True):
    """Pages come out of the stash."""

    who: str
    most: int | None = None
    """How many, nice then first in first out; None: all."""


RuleChange = AddIgnore | AddSet | SetRules | SetNice | RemoveIgnore | RemoveSet
Removal = RemoveIgnore | RemoveSet
"""What may bring pages back, and keeps none out."""
Change = (
    SetValues | RuleChange | AmendPatterns | SetTerms | AbortJob | FailJob | PauseJob | ResumeJob | StashPages
    | UnstashPages
)  # fmt: skip


class ChangeMade(Struct, frozen=True):
    """One thing that changed."""

    what: str
    """The setting's name, or `ignores`."""
    before: str
    after: str


class ChangeReply(Struct, frozen=True):
    """The answer to a change; `error` is one line for people if nothing changed."""

    changes: tuple[ChangeMade, ...] = ()
    error: str = ""
