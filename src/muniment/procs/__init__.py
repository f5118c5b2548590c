"""Operating-system processes: launching workers, the lock on a directory, and dying with one's parent.

Others import: command_text, files, graces, lock, registry, socket, stop, sweep, tree.
"""
