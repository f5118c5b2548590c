"""Frozen values: the words of the project, without behaviour beyond their own fields.

Others import: capture, change, cookie, event, exchange, failure, job, link, mask, names, page, pipeline, place,
prior, process, queue, result, rule, seed, session_calls, token, url.
"""
