"""Views: how jobs, pages and pipelines stand, for operators. They only read.

Others import: claims, jobs, kinds, pages, pipelines, processes.
"""
