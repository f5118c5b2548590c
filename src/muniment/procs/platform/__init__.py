"""What the operating system tells of processes.

Others import: identity, linux.
"""
