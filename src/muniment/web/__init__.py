"""The server: the API of a tracker over HTTP, for pipelines and operators.

Others import: serving.
"""
