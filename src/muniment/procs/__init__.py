"""Operating-system processes: launching workers, the lock on a directory, and dying with one's parent.

`liveness` has which rows are of living processes, `stop_timeouts` how long each child may take to end.

Others import: command_text, files, liveness, lock, registry, socket, stop, stop_timeouts, sweep, tree.
"""
