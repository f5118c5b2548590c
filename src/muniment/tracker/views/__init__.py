"""Views: how jobs, pages and pipelines stand, for operators. They only read.

Others import: jobs, kinds, pages, pipelines, processes, waiting.
"""
