"""Pure decisions: values in, a verdict out; no clock, no file, no network.

Others import: assignment, causes, changes, domains, estimate, host_queue, ignore_sets, inflight, job_rules,
patterns, politeness, proxies, resume, retry, rule_engine, scope, session_ids, sitemaps, worker_deaths.
"""
