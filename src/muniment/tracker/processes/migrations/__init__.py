"""Migrations of the tables of machines and processes, oldest first; `schema/processes.py` is what they add up to."""
