"""What rules say of a page: matching, order, and one line for a rule that makes no sense."""

from __future__ import annotations

import pytest

from muniment.errors import UsageError
from muniment.model.link import FoundAs
from muniment.model.rule import EngineOrders, Rule
from muniment.rules.job_rules import IgnoreSet, Rules, compile_ruleset, keep_changes, replace_rules
from muniment.rules.scope import FAR

URL = "https://a.example/dir/page?x=1"


def judged(*rules: Rule, url: str = URL, depth: int = 2, found_as: FoundAs = FoundAs.A, ignore: tuple[str, ...] = ()):
    return compile_ruleset(1, Rules((), ignore, (), rules), [URL]).verdict(url, depth, found_as)


@pytest.mark.parametrize(
    "rule",
    [
        Rule(skip=True),
        Rule(skip=True, regex=r"p.ge\?"),
        Rule(skip=True, regex="^{primary_url}$"),
        Rule(skip=True, regex="(?<=/)page"),
        Rule(skip=True, host="a.example"),
        Rule(skip=True, host="*.example"),
        Rule(skip=True, host="*.a.example"),
        Rule(skip=True, prefix="https://a.example/dir/"),
        Rule(skip=True, depth=(2, 2)),
        Rule(skip=True, depth=(1, None)),
        Rule(skip=True, kind="link"),
        Rule(skip=True, kind="link", depth=(0, 9), host="a.example", prefix="https:", regex="x="),
    ],
)
def test_a_rule_is_about_pages_for_which_all_it_names_holds(rule):
    assert judged(rule).skipped == "rule 1: skip is true"


@pytest.mark.parametrize(
    "rule",
    [
        Rule(skip=True, regex="pagx"),
        Rule(skip=True, host="example"),
        Rule(skip=True, host="*.b.example"),
        Rule(skip=True, host="*.le"),
        Rule(skip=True, prefix="http:"),
        Rule(skip=True, depth=(3, None)),
        Rule(skip=True, depth=(0, 1)),
        Rule(skip=True, kind="requisite"),
        Rule(skip=True, kind="link", regex="nothing"),
    ],
)
def test_a_rule_is_not_about_other_pages(rule):
    assert judged(rule).reason == ""


def test_no_depth_is_meant_for_pages_that_no_link_leads_to():
    assert judged(Rule(skip=True, depth=(0, None)), depth=FAR, found_as=FoundAs.IMG).reason == ""


def test_the_last_value_of_each_setting_counts():
    verdict = judged(
        Rule(accept=False, skip=True, custom_js="1", ua="a"), Rule(accept=True), Rule(custom_js="2"), Rule(ua="")
    )
    assert (verdict.refused, verdict.skipped, verdict.orders) == ("", "rule 1: skip is true", EngineOrders("2", ""))


def test_an_ignore_pattern_says_accept_false_and_skip_true_before_all_rules():
    assert judged(ignore=("page",)).refused == judged(ignore=("page",)).skipped == "ignore: page"
    assert judged(Rule(accept=True), ignore=("page",)).reason == "ignore: page"
    assert judged(Rule(accept=True, skip=False), ignore=("page",)).reason == ""


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (Rule(regex="x"), "sets nothing"),
        (Rule(kind="picture", skip=True), "there is no kind 'picture'; these are: link, requisite"),
        (Rule(depth=(3, 2), skip=True), "no page has a depth from 3 to 2"),
        (Rule(depth=(-1, None), skip=True), "no page has a depth"),
        (Rule(host="*.", skip=True), "is not a host"),
        (Rule(regex="(", skip=True), "is not a regular expression"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_in_one_line(rule, says):
    with pytest.raises(UsageError, match=says.replace("(", r"\(")) as refused:
        judged(Rule(skip=False), rule)
    assert "\n" not in str(refused.value)


def test_rules_outlast_a_resume_and_patterns():
    rules = replace_rules(Rules(ignore=("x",), sets=(IgnoreSet("s", ("y",)),)), (Rule(skip=True),))
    assert keep_changes(rules, Rules(), Rules()).in_order == (Rule(skip=True),)
    with pytest.raises(UsageError, match="in force already"):
        replace_rules(rules, (Rule(skip=True),))
