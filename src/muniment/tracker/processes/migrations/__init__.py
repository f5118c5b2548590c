"""Migrations of the tables of machines and processes, oldest first; `process_tables.py` is what they add up to."""
