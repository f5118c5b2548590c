"""robots.txt and robots meta words (RFC 9309).

`rules` has what a file allows and how much of it is read, `validity` for how long an answer holds.

Others import: directives, groups, line, rules, validity.
"""
