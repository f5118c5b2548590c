"""A job as a pipeline has it: its settings with what belongs to the machine, and the rules that pages are judged by."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from muniment.errors import ServerError
from muniment.model.network.sessions import JobRules, SessionJob
from muniment.model.page import Claim
from muniment.model.rule import Rule
from muniment.rules.job_rules import Rules, compile_ruleset
from muniment.rules.rendering.needs_browser import may_render
from muniment.rules.rule_engine import Ruleset
from muniment.rules.scope import FAR
from muniment.settings.option_table import Settings

__all__ = ["JobTermsInForce", "job_in_force", "why_left_out"]


class JobTermsInForce(Struct, frozen=True):
    """What a job's pages are fetched and judged by."""

    settings: Settings
    """The job's, without anything of a machine."""
    age: int
    """How many changes the job had."""
    ruleset: Ruleset
    origins: tuple[str, ...]
    """Of its start URLs."""
    state: str
    """A `model.job.JobState`."""
    renders: bool = False
    """Whether some of its pages may need a browser."""


def job_in_force(said: SessionJob) -> JobTermsInForce:
    """A job as the server describes it; raises ServerError when this version cannot read it."""
    try:
        settings = msgspec.json.decode(said.settings, type=Settings)
        rules = msgspec.json.decode(said.rules.rules, type=list[Rule])
        ruleset = _ruleset(said.rules, rules, said.own_hosts)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ServerError(f"the server describes a job in an unknown way: {error}") from None
    renders = may_render(settings.engine, rules)
    return JobTermsInForce(settings, said.settings_age, ruleset, _origins(said), said.state, renders)


def _origins(said: SessionJob) -> tuple[str, ...]:
    # where it is not said whether a host is asked over http, what is secret goes over TLS alone
    return tuple(said.origins or [f"https://{host}" for host in said.own_hosts])


def _ruleset(rules: JobRules, in_order: list[Rule], own_hosts: list[str]) -> Ruleset:
    given = Rules(tuple(rules.include), tuple(rules.ignores), (), tuple(in_order))
    return compile_ruleset(rules.version, given, [f"http://{host}/" for host in own_hosts])


def why_left_out(claim: Claim, ruleset: Ruleset) -> str:
    """Why the rules let a page not be fetched; empty when they do."""
    if ruleset.in_order is None and not ruleset.ignore:
        return ""
    return ruleset.verdict(claim.url, FAR if claim.depth < 0 else claim.depth, claim.found_as).skipped
