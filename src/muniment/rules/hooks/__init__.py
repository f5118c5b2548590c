"""What hooks are called, which settings they get, which of them run, and what their output means.

Others import: file_names, plugin_config, plugin_settings.
"""
