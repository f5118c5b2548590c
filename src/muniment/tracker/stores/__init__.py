"""What the tracker keeps beside pages: hosts, robots.txt, cookies, results.

Others import: cookies, hooks, hosts, id_blocks, payload_file, results, robots, seen_cache, text_file.
"""
