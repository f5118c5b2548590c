"""Child processes: launched, supervised, ended with their parent, and the files of their output.

Others import: child, detached, fork_server, launch, piped, run.
"""
