"""What commands read in Redis: the logs of jobs, and how live planes stand.

Others import: firehose, standing.
"""
