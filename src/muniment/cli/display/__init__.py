"""What a crawl shows: a panel or lines while it runs, and a summary at its end.

`panel` and `line` show a run, as often as `app.run` says, `summary` has what is printed at its end.

Others import: counts, line, panel, quantities, summary.
"""
