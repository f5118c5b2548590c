"""The crawl itself: the worker's loop, the orchestrator, and what they say to each other.

Others import: channel, events, ports, progress, protocol.
"""
