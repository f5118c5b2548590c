"""Links out of documents: bytes in, references out, with no IO, no await and no clock.

<<<<<<< HEAD
Others import: charset, coding, found_links, headers, links, seed_lines, sitemap, text, xml.
=======
Others import: coding, coding_stream, found_links, headers, links, seed_lines, sitemap, text, xml.
>>>>>>> 247974a66f5e57d6974cb9204c4139f340c105a6
"""
