"""What a command line names: start URLs, lists, secrets, ignore sets, networks.

Each module reads one kind of file or text; which variables of the environment count is in `settings.environment`.

Others import: bounded_file, credentials, ignore_sets, networks, redis_server, scripts, secrets, seed_list,
start_urls.
"""
