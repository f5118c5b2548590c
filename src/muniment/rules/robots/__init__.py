"""robots.txt and robots meta words (RFC 9309).

`groups` reads the rules for one agent, `rules` has what they allow, `validity` for how long an answer holds.

Others import: directives, groups, rules, validity.
"""
