"""What a command line names: start URLs, lists, secrets, ignore sets, networks.

Others import: credentials, ignore_sets, networks, scripts, secrets, seed_list, start_urls.
"""
