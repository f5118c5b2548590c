"""Commands of the contract that a later version carries out: they parse, and say so."""

from __future__ import annotations

from typing import Any

import click

from muniment.cli.options import setting_options
from muniment.errors import NotYetError

__all__ = ["fetch", "process"]

_ANY = {"ignore_unknown_options": True, "allow_extra_args": True}


def _later(command: str) -> int:
    raise NotYetError(f"`muniment {command}` is not carried out yet by this version")


@click.command()
@click.argument("seed")
@setting_options
@click.option(
    "--from", "seed_format", type=click.Choice(["lines", "jsonl", "parquet", "sitemap"]), help="Seed list format."
)
@click.option("--shard", type=click.IntRange(min=0), help="Which part of the list.")
@click.option("--shards", type=click.IntRange(min=1), help="How many parts.")
@click.option("--retry-failed", is_flag=True, help="Try failed rows again.")
@click.option("--redirects", type=click.Choice(["on", "off"]), help="Follow redirects.")
@click.option("--store-unchanged", is_flag=True, help="Store unchanged bodies too.")
@click.option("--reorder", type=click.Choice(["on", "off"]), help="Spread the list over hosts.")
@click.option("--json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="Logging.")
def fetch(**_given: Any) -> int:
    """Archive every URL of a list [not yet]."""
    return _later("fetch")


@click.command(context_settings=_ANY)
def process() -> int:
    """Show and stop processes [not yet]."""
    return _later("process")
