"""Operating-system processes: launching workers, the lock on a directory, and dying with one's parent.

Others import: command_text, files, lock, registry, socket, stop, stop_timeouts, sweep, tree.
"""
