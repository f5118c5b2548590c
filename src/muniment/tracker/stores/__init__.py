"""What the tracker keeps beside pages: hosts, robots.txt, cookies, results.

One module for each; `seen_cache` has which URLs are known.

Others import: attempts, children, cookies, families, hooks, hosts, id_blocks, payload_file, results, robots,
seen_cache, seen_text, tallies, text_file.
"""
