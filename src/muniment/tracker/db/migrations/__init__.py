"""Migrations of the tracker's tables, oldest first; `schema/tables.py` is what they add up to."""
