"""Settings: the one table of options, how their values are read, and what the environment says.

Others import: environment, hooks, live, table, values, written.
"""
