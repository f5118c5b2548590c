"""What commands read in Redis: the logs of jobs, and the state of live planes.

Others import: firehose, status.
"""
