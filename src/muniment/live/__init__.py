"""The live plane: what ArchiveBot's programs see of a job in Redis, and how they steer it.

`job_sync` writes and reads a job, `entries` has the fields of a line of its log, `layout` its keys, `log_trimming` how
many lines stay of a running job, `endings` how long what is left of one that ended, `queues` takes queued jobs.

Others import: address, entries, fleet_plane, ident, job_sync, layout, link, log_file, pipelines, plane, ports,
reaper.
"""
