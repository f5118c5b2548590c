"""Recovery: what is done about files that a crash or a disk left incomplete or damaged.

Others import: cut, inventory, quarantine, verify.
"""
