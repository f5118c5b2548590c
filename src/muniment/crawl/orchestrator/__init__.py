"""The orchestrator: hands out pages, decides how hosts are treated, owns workers, files and limits of one run.

`schedule` has which host comes next, `hosts` its gaps and back-offs (by `rules.hosts`), `limits` when a run
ends and when it pauses because the disk is nearly full, `workers` how many there are, `warc_files` what becomes of
full files.

Others import: limits, loop, seed_feed, warc_files, workers.
"""
