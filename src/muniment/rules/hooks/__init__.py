"""What hooks are called, which settings they get, which of them run, and what their output means.

Others import: environment, file_names, outcomes, pages, plugin_config, plugin_settings, records.
"""
