"""The databases below the tracker: SQLite and PostgreSQL, their statements, errors and migrations."""
