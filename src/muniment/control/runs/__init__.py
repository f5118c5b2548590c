"""The runs in directories, for who watches many of them: where they are, how they stand, and their logs.

`folder` has which runs there are, `start` how a new one begins, `log` how its lines are read.

Others import: answer_cache, backend, counts, folder, known_runs, log, page_artifacts, replays, start.
"""
