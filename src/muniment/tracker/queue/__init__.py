"""The queue of pages: admitted, claimed, finished, given back.

Others import: admission, counters, frontier, held_pages, local, lost_captures, page_facts, page_lookup, rejudge,
retries, seeds, sites.
"""
