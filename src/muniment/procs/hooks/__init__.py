"""Hooks on this machine: where they lie, what they need, and how they are run.

`discovery` has which files are hooks (their names: `rules.hooks.file_names`), `requirements` what they need,
`hook_process` how one is run and when it is cut for what it takes (numbers: `settings.hooks`).

Others import: discovery, hook_process, left_files, requirements, tree_watch.
"""
