"""The queues of Redis: jobs that ArchiveBot's programs queued are taken into a tracker.

`pending` has how one is taken, `queued_job` how its record is read, `taker` what becomes of it; which pipelines take
from which queue is in `rules.assignment`.

Others import: taker.
"""
