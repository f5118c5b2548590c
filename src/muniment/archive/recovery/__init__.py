"""Recovery: what is done about files that a crash or a disk left incomplete or damaged.

`cut` has what a crash leaves, `verify` what a full file must pass, `quarantine` what becomes of a damaged one.

Others import: cut, inventory, quarantine, verify.
"""
