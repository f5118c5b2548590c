"""What a command line names: start URLs, lists, secrets, ignore sets, networks."""
