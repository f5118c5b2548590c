"""The verbs: one function for each change of a job that an operator can make, whatever asks for it.

Others import: delivery, ignores, job, nice, rules, settings, stash, steering.
"""
