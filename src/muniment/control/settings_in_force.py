"""Settings of a job that may be changed, with the values in force."""

from __future__ import annotations

from muniment.model.network.dashboard import SettingValue
from muniment.rules.changes import written_value
from muniment.settings.option_table import options
from muniment.settings.settings_json import command_of, option_name
from muniment.tracker.db.database import Database
from muniment.tracker.jobs import store

__all__ = ["settings_in_force"]


def settings_in_force(db: Database, job_id: int, *, of_machine: bool) -> list[SettingValue]:
    """The settings that may be changed; with `of_machine` those of its machine and its run, too."""
    settings = store.settings_of(store.load_job(db, job_id))
    return [
        SettingValue(option_name(option), written_value(getattr(settings, name)), option.help)
        for name, _, _, option in options(command_of(settings))
        if option.live and (of_machine or option.kind == "job")
    ]
