"""`python -m muniment`."""

from muniment.cli import entry

entry()
