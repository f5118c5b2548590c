"""The capture index: rows, the journal beside each open file, and the Parquet files made of them.

Others import: journal, parquet, read, repeated_lines, rows.
"""
