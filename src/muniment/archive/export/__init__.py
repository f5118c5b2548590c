"""Export: an archive as one WACZ, or its index as CDXJ.

`cdxj` has the lines of an index, `surt` their keys, `pages` which captures are pages, `wacz` what is in a package and
its title, `wacz_zip` the ZIP and `datapackage.json`.

Others import: cdxj, gather, pages, target, wacz, wacz_rows.
"""
