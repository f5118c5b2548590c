"""The tracker: jobs, pages, relations, attempts and results. The only SQL of the project lives here.

Rooms, from the bottom: `schema`, `db`, `stores`, `jobs`, `queue`, `fleet`; `views` and `hooks` beside them.

Others import: connect, open.
"""
