"""What operators and a server say to each other, as JSON objects: orders, changes, and how things stand.

Others import: captures, counts, dashboard, jobs, lists, live, metrics, pipeline_events, pipelines, processes, scopes,
sessions, tokens.
"""
