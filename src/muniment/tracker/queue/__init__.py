"""The queue of pages: admitted, claimed, finished, given back.

`frontier` has these four in their transactions, and each has its module; `claims` has the order in which pages go,
`rejudge` what changed rules do to pages, also in a dry run (sums and examples), `lost_captures` what waits again when
captures or a pipeline's disk are lost.

Others import: admission, counters, frontier, local, locked_pages, lost_captures, page_facts, page_lookup, rejudge,
rounds, seeds, sites.
"""
