"""Pure decisions: values in, a verdict out; no clock, no file, no network.

`scope` has hops, redirects and what belongs to a site; `sitemaps` where they are looked for; `retry` which failures
are tried again and after which wait (how often: `--tries`, in `settings.option_table`); `worker_deaths` when a page
is given up; `assignment` which job a slot gets; `host_permits` how the connections to a host are shared out among
pipelines; `hosts` how hosts are treated.

Others import: assignment, changes, domains, estimate, finish_checks, host_permits, host_rotation, ignore_sets,
job_rules, patterns, proxies, resume, retry, rule_engine, scope, session_ids, sitemaps, skip_causes, worker_deaths.
"""
