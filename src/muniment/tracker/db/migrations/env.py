"""How Alembic runs here: on the connection that `tracker.db.migrate` hands over."""

from alembic import context

from muniment.tracker.schema.pipelines import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
