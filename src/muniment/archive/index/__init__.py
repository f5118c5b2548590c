"""The capture index: rows, the journal beside each open file, and the Parquet files made of them.

Others import: find, journal, parquet, read, repeated_lines, rows.
"""
