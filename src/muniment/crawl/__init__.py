"""The crawl itself: the worker's loop, the orchestrator, and what they say to each other.

`protocol` has their messages, `ports` what a crawl asks of others, `progress` the figures of display and summary.

Others import: channel, events, ports, progress, protocol.
"""
