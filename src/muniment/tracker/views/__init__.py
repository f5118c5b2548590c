"""Views: how jobs, pages and pipelines stand, for operators. They only read.

`waiting` has what comes next, `jobs` the sums, `counts` the counts of every face, `figures` those of `/metrics`.

Others import: attempt_search, counts, figures, jobs, log_lines, machines, pages, pipelines, processes, tracker_kind,
waiting.
"""
