"""Frozen values: the words of the project, without behaviour beyond their own fields.

A module for each noun; `network` has what goes over HTTP.

Others import: capture, change, cookie, event, exchange, failure, host, job, link, mask, names, page, pipeline, place,
process, queue, result, rule, seed, url.
"""
