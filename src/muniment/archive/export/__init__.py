"""Export: an archive's index as CDXJ, and the archive as a WACZ file."""
