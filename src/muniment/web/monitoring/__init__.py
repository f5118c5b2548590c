"""Monitoring of a server: its metrics, and its log.

Others import: log, metrics, metrics_routes.
"""
