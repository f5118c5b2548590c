"""Settings: the one table of options, how their values are read, and what the environment says.

All numbers that options have by default are in `option_table`, and in `hooks`, `rendering` and `live_plane`; that of
`--min-free` depends on the disk (`crawl.orchestrator.limits`). `environment` has every variable of the environment
that is read, `values` what makes sense.

Others import: environment, hooks, live_plane, option_table, rendering, settings_json, values.
"""
