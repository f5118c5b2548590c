"""The browser: Chromium as a process, steered over a pipe; what it loads goes through a port that others give it.

`page` has what is done with a page, `screenshots` its pictures, `pool` when browsers are replaced.

Others import: cookies, faults, options, pool, ports, program, rendered, running, traffic, user_agent.
"""
