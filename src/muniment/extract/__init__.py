"""Links out of documents: bytes in, references out, with no IO, no await and no clock.

Others import: charset, coding, coding_stream, css, headers, link_collector, links, seed_lines, sitemap, text, xml.
"""
