"""The index of rules leaves out no rule that is about a URL, and a verdict looks at few of a thousand."""

from __future__ import annotations

import random

from muniment.model.link import FoundAs
from muniment.model.rule import Rule
from muniment.rules.rule_engine import OrderedRules
from muniment.rules.rule_index import RuleIndex

HOSTS = ["a.example", "b.a.example", "c.b.a.example", "other.example", "example"]
PATHS = ["", "a", "a/b", "a/b/c?x=1", "list/7"]
STARTS = ["http://a.example/"]


def chosen(random_: random.Random) -> Rule:
    """A rule that names some of what rules can name."""
    host = random_.choice(["", "", *HOSTS, *(f"*.{host}" for host in HOSTS)])
    return Rule(
        regex=random_.choice(["", "", "/a", "x=[0-9]", "{primary_url}a", "no such text"]),
        host=host,
        prefix=random_.choice(["", "", "http", f"http://{random_.choice(HOSTS)}/", "http://a.example/a/"]),
        depth=random_.choice([None, None, (0, 1), (1, None)]),
        nice=random_.randrange(100),
    )


def test_a_verdict_is_that_of_every_rule_looked_at_in_turn() -> None:
    random_ = random.Random(28)
    for _ in range(200):
        rules = [chosen(random_) for _ in range(random_.randrange(1, 30))]
        together = OrderedRules(rules, STARTS)
        alone = [OrderedRules([rule], STARTS) for rule in rules]
        for host in HOSTS:
            for path in PATHS:
                url = f"http://{host}/{path}"
                depth = random_.randrange(3)
                said = [one.verdict(url, depth, FoundAs.LINK, "").nice for one in alone]
                wanted = next((nice for nice in reversed(said) if nice is not None), None)
                assert together.verdict(url, depth, FoundAs.LINK, "").nice == wanted, (url, rules)


def test_few_of_a_thousand_rules_are_looked_at() -> None:
    rules = [
        *(Rule(host=f"h{n}.example", skip=True) for n in range(300)),
        *(Rule(host=f"*.w{n}.example", skip=True) for n in range(300)),
        *(Rule(prefix=f"http://h{n}.example/private/", skip=True) for n in range(399)),
        Rule(nice=1),
    ]
    index = RuleIndex([(rule, ()) for rule in rules])
    assert index.candidates("http://h7.example/private/x", "h7.example", ()) == [7, 607, 999]
    assert index.candidates("http://x.w9.example/", "x.w9.example", ()) == [309, 999]
    assert index.candidates("urn:x", "", ()) == [999]
