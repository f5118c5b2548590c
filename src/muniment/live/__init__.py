"""The live plane: what ArchiveBot's programs see of a job in Redis, and how they steer it.

Others import: address, entries, fleet_plane, ident, job_sync, layout, link, log_file, pipelines, plane, ports,
reaper.
"""
