"""What hooks are called, which settings they get, which of them run, and what their output means.

`file_names` has which names are hooks, and their order; `records` how printed lines are read, and how long one may
be; `outcomes` what an exit code means; `environment` what a hook gets.

Others import: environment, file_names, outcomes, pages, plugin_config, plugin_settings, records.
"""
