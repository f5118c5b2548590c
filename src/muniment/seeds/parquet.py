"""Seed lists in Parquet files. Their reader is `table`: it is heavy to import, and needed by this format alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from muniment.model.seed import SeedPlace
from muniment.seeds.format_type import Numbered, SeedFormat

__all__ = ["FORMAT"]


def _rows(path: Path, start: SeedPlace) -> Iterable[Numbered]:
    from muniment.seeds.table import rows  # noqa: PLC0415

    return rows(path, start)


def _names_accounts(path: Path) -> bool:
    from muniment.seeds.table import names_accounts  # noqa: PLC0415

    return names_accounts(path)


FORMAT = SeedFormat(
    "parquet",
    "a row a line, with a column `url`; also an earlier `captures.parquet`",
    _rows,
    (".parquet", ".pq"),
    names_accounts=_names_accounts,
)
