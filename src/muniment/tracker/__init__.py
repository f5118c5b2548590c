"""The tracker: jobs, pages, relations, attempts and results. The only SQL of the project lives here.

Others import: connect, open.
"""
