"""The queue of pages: admitted, claimed, finished, given back.

Others import: admission, counters, frontier, lost_captures, page_facts, page_lookup, rejudge, retries, seeds, sites.
"""
