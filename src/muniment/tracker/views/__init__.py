"""Views: how jobs, pages and pipelines stand, for operators. They only read.

Others import: figures, jobs, kinds, log_lines, machines, pages, pipelines, processes, tries, waiting.
"""
