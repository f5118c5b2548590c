"""The queues of Redis: jobs that ArchiveBot's programs queued are taken into a tracker.

Others import: taker.
"""
