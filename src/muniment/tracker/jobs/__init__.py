"""Jobs: their states, settings, changes, audit, stash and reports."""
