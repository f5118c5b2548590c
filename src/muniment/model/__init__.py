"""Frozen values: the words of the project, without behaviour beyond their own fields.

Others import: capture, change, cookie, event, exchange, failure, host, job, link, mask, names, page, pipeline, place,
process, queue, result, rule, seed, url.
"""
