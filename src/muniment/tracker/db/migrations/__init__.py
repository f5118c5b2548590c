"""Migrations of the tracker's tables, oldest first; `tables.py` is what they add up to."""
