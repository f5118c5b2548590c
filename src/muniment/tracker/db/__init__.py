"""The databases below the tracker: SQLite and PostgreSQL, their statements, errors and migrations.

`sqlite` and `postgresql` open them, begin transactions and connect again; `database` has how long is waited for one
that is locked or gone, `statements` where the dialects differ.

Others import: database, postgresql, postgresql_engine, postgresql_errors, sqlite, statements.
"""
