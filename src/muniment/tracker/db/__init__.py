"""The databases below the tracker: SQLite and PostgreSQL, their statements, errors and migrations.

Others import: database, postgresql, postgresql_engine, postgresql_errors, sqlite, statements.
"""
