"""The browser: Chromium as a process, steered over a pipe; what it loads goes through a port that others give it.

Others import: cookies, faults, options, pool, ports, program, rendered, running, traffic, user_agent.
"""
