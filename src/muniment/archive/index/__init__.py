"""The capture index: rows, the journal beside each open file, and the Parquet files made of them.

Its columns are the fields of `model.capture.Capture`, in their order.

Others import: find, journal, parquet, read, repeated_lines, rows.
"""
