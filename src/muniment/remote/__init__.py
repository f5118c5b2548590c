"""Clients of a server: what a pipeline and an operator ask of it over HTTP. They know no tracker.

Others import: credentials, doors, operator.
"""
