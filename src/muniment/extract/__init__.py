"""Links out of documents: bytes in, references out, with no IO, no await and no clock.

Others import: coding, coding_stream, found_links, headers, links, seed_lines, sitemap, text, xml.
"""
