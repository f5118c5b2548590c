"""What a command line names: start URLs, lists, secrets, ignore sets, networks.

Others import: bounded_file, credentials, ignore_sets, networks, redis_server, scripts, secrets, seed_list,
start_urls.
"""
