"""Operating-system processes: launching workers, the lock on a directory, and dying with one's parent."""
