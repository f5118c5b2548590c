"""Reading archives of any tool: WARC files, packed or not, alone or in a WACZ.

Others import: containers, foreign.
"""
