"""The browser: Chromium as a process, steered over a pipe; what it loads goes through a port that others give it.

`page` has what is done with a page, `traffic` when it counts as settled, `screenshots` its pictures, `running` after
how many pages a browser takes no more, `pool` how much memory it may have and how it is replaced.

Others import: cookies, faults, options, pool, ports, program, rendered, running, traffic, user_agent.
"""
