"""Commands of the contract that a later version carries out: they parse, and say so."""

from __future__ import annotations

import click

from muniment.errors import NotYetError

__all__ = ["process"]

_ANY = {"ignore_unknown_options": True, "allow_extra_args": True}


def _later(command: str) -> int:
    raise NotYetError(f"`muniment {command}` is not carried out yet by this version")


@click.command(context_settings=_ANY)
def process() -> int:
    """Show and stop processes [not yet]."""
    return _later("process")
