"""The browser: Chromium as a process, steered over a pipe; what it loads goes through a port that others give it.

`page` has what is done with a page, `traffic` when it counts as settled, `screenshots` its pictures, `running` after
how many pages a browser takes no more, `pool` how much memory it may have, how it is replaced, and how often a page
then begins again.

Others import: cookies, faults, options, pool, ports, program, rendered, running, traffic, user_agent.
"""
