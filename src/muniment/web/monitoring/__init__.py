"""Monitoring of a server: its metrics, and its log.

`metrics` has how each is counted, `model.network.metrics` their names and help.

Others import: log, metrics, metrics_routes.
"""
