"""Export: an archive as one WACZ, or its index as CDXJ.

Others import: cdxj, gather, pages, surt, target, wacz, wacz_rows.
"""
