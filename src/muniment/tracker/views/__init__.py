"""Views: how jobs, pages and pipelines stand, for operators. They only read.

Others import: attempt_search, figures, jobs, log_lines, machines, pages, pipelines, processes, tracker_kind, waiting.
"""
