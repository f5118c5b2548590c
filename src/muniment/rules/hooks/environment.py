"""The environment of a hook: what is handed on, what a run and a page add, and nothing else."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping

__all__ = ["handed_on", "page_context", "recorded_network", "with_folders"]

_HANDED_ON = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|XDG_\w+|DISPLAY|SSL_CERT_FILE|SSL_CERT_DIR"
    r"|(?:http|https|ftp|all|no)_proxy|(?:HTTP|HTTPS|FTP|ALL|NO)_PROXY"
)


def handed_on(own: Mapping[str, str]) -> dict[str, str]:
    """What of this process's environment hooks get; a locale that is not UTF-8 becomes C.UTF-8."""
    kept = {name: value for name, value in own.items() if _HANDED_ON.fullmatch(name)}
    locale = kept.get("LC_ALL") or kept.get("LC_CTYPE") or kept.get("LANG", "")
    if not re.search(r"utf-?8", locale, re.IGNORECASE):
        kept = {name: value for name, value in kept.items() if not name.startswith("LC_")}
        kept["LANG"] = "C.UTF-8"
    return kept


def recorded_network(address: str, certificate: str, wgetrc: str) -> dict[str, str]:
    """The variables by which programs go through the proxy at `address`, and trust the certificate in a file."""
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), f"http://{address}")
    nothing = dict.fromkeys(("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY", "ftp_proxy", "FTP_PROXY"), "")
    trust = dict.fromkeys(
        ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"), certificate
    )
    return {**proxies, **nothing, **trust, "NODE_USE_ENV_PROXY": "1", "WGETRC": wgetrc}


def with_folders(path: str, folders: Iterable[str]) -> str:
    """PATH with these folders first."""
    return os.pathsep.join(dict.fromkeys([*folders, *filter(None, path.split(os.pathsep))]))


def page_context(*, snapshot_id: str, depth: int | None, crawl_id: str, plugin: str, hook: str, attempt: int) -> str:
    """`EXTRA_CONTEXT`: what a hook's records may repeat."""
    context: dict[str, object] = {"snapshot_id": snapshot_id, "snapshot_depth": depth} if snapshot_id else {}
    context |= {"crawl_id": crawl_id, "plugin": plugin, "hook_name": hook.rpartition(".")[0], "attempt": attempt}
    return json.dumps(context)
