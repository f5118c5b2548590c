"""Rows of machines and processes."""
