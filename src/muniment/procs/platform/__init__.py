"""Processes as the operating system shows them."""
