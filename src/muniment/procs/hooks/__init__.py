"""Hooks on this machine: where they lie, what they need, and how they are run.

`discovery` has which files are hooks (their names: `rules.hooks.file_names`), `requirements` what they need,
`hook_process` how one is run.

Others import: discovery, hook_process, left_files, requirements, tree_watch.
"""
