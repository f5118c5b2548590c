"""The options of hooks. They are of a command line alone, so they are no settings of a job."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from muniment.settings.option_table import Option

__all__ = ["HookOptions"]

_MIB = 1 << 20


class HookOptions(Struct, frozen=True, kw_only=True):
    """What a command line says of hooks; the defaults are those of `crawl`."""

    hooks: Annotated[
        tuple[str, ...],
        Option(("--hooks",), "Run the hooks of this folder of plugins; may be repeated.", "DIR", group="Hooks"),
    ] = ()
    plugins: Annotated[
        str, Option(("--plugins",), "Run these plugins and what they require (default: all that can run).", "A,B")
    ] = ""
    hook_env: Annotated[
        tuple[str, ...],
        Option(
            ("--hook-env",),
            "A setting for hooks; NAME alone hands on the variable of that name. May be repeated.",
            "NAME[=VALUE]",
        ),
    ] = ()
    hook_env_file: Annotated[
        str | None, Option(("--hook-env-file",), "Settings for hooks, lines NAME=VALUE.", "FILE")
    ] = None
    hook_include: Annotated[
        tuple[str, ...],
        Option(("--hook-include",), "Run hooks only for pages whose URL matches; may be repeated.", "RE"),
    ] = ()
    hook_jobs: Annotated[
        int | None,
        Option(("--hook-jobs",), "Pages whose hooks run at a time (default: the number of CPUs).", "N"),
    ] = None
    hook_timeout: Annotated[
        float, Option(("--hook-timeout",), "Seconds of a hook whose plugin has no timeout of its own.", "S")
    ] = 60.0
    hook_tries: Annotated[int, Option(("--hook-tries",), "Maximum tries of a hook that failed.", "N")] = 1
    hook_output: Annotated[
        int, Option(("--hook-output",), "Maximum bytes of each of a hook's stdout and stderr.", "BYTES")
    ] = 64 * _MIB
    hook_memory: Annotated[
        int, Option(("--hook-memory",), "Maximum memory of a hook with all that it began; 0: no limit.", "BYTES")
    ] = 2048 * _MIB
    hook_python: Annotated[
        str | None,
        Option(("--hook-python",), "Python for hooks that ask abxpkg for one (default: python3 of PATH).", "FILE"),
    ] = None
    hook_abxpkg: Annotated[
        bool,
        Option(("--hook-abxpkg",), "Let abxpkg run hooks that ask for it; it may download and install."),
    ] = False
    hook_network: Annotated[
        Literal["record", "direct"] | None,
        Option(
            ("--hook-network",),
            "Record what hooks fetch, or have it go past Muniment (default: record; in hooks run: direct).",
            "record|direct",
        ),
    ] = None
