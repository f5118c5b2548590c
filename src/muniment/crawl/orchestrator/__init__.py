"""The orchestrator: hands out pages, decides how hosts are treated, owns workers, files and limits of one run.

Others import: limits, loop, seed_feed, warc_files, workers.
"""
