"""Settings: the one table of options, how their values are read, and what the environment says.

Others import: environment, hooks, live, option_table, rendering, settings_json, values.
"""
