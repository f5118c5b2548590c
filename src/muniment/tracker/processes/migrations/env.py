"""How Alembic runs here: on the connection of `tracker.processes.postgresql`, with its own version table."""

from alembic import context

from muniment.tracker.schema.processes import VERSION_TABLE, metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    version_table_pk=False,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
