"""Links out of documents: bytes in, references out, with no IO, no await and no clock.

`links` chooses the reader, by `media_type`; `elements` has which elements of HTML hold links, `attributes` what the
words of a `rel` and of `srcset` mean, `headers` those of responses, `link_collector` how many links of a document
count.

Others import: charset, coding, coding_stream, css, headers, link_collector, links, media_type, seed_lines, sitemap,
text, xml.
"""
