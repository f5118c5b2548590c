"""The runs in directories, for who watches many of them: where they are, how they stand, and their logs.

Others import: backend, folder, kept, known_runs, log, made, replays.
"""
