"""robots.txt and robots meta words (RFC 9309).

Others import: directives, groups, line, rules.
"""
