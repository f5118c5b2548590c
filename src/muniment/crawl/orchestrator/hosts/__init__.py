"""Hosts of a run: how each is treated now, and each of its origins that fails by itself.

`policy` takes in what workers report (judged by `rules.hosts`), `states` has what follows, `dead_origins` what is asked
for nothing any more, `updates` what workers are sent, `pauses` what is waited for.

Others import: policy.
"""
