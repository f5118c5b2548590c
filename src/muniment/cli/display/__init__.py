"""What a crawl shows: a panel or lines while it runs, and a summary at its end.

Others import: line, panel, quantities, summary.
"""
