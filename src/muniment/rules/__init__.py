"""Pure decisions: values in, a verdict out; no clock, no file, no network.

Others import: assignment, causes, changes, domains, estimate, host_queue, ignore_sets, output_names, patterns,
proxies, resume, retry, rule_engine, rulesets, scope, session_ids, sitemaps, worker_deaths.
"""
