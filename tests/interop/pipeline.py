"""A pipeline and a listener made of ArchiveBot's own `Control` and `Listener`; for Python 3.9 with redis 2.10.3.

python pipeline.py CHECKOUT REDIS work KEY NICKNAME: takes jobs, one at a time, logs three pages of each, and ends it.
python pipeline.py CHECKOUT REDIS listen IDENT: prints the settings that it has whenever they are others.
Both go on until they are killed. Lines of standard output are JSON.
"""

import json
import sys
import time
import types

checkout, url, verb, *given = sys.argv[1:]
sys.path.insert(0, checkout + "/pipeline")
# of wpull, which needs an older Python still, only the name of a type is asked for
wpull = sys.modules["wpull"] = types.ModuleType("wpull")
wpull.pipeline = sys.modules["wpull.pipeline"] = types.ModuleType("wpull.pipeline")
wpull.pipeline.item = sys.modules["wpull.pipeline.item"] = types.ModuleType("wpull.pipeline.item")
wpull.pipeline.item.URLRecord = object

from archivebot import control, shared_config  # noqa: E402
from archivebot.wpull import settings  # noqa: E402

_EXPIRE_S = 172_800
_FIELDS = "fetch_depth", "log_key", "queued_at", "slug", "started_by", "started_in", "url", "url_file"


_stdout, sys.stdout = sys.stdout, sys.stderr  # theirs has lines of its own


def _tell(**what):
    print(json.dumps(what), file=_stdout, flush=True)


def _control():
    return control.Control(url, shared_config.log_channel(), shared_config.pipeline_channel())


def work(key, nickname):
    """As pipeline.py does: reserve, heartbeat, log, done."""
    mine = _control()
    while True:
        mine.pipeline_report(key, {"id": key, "nickname": nickname, "ts": int(time.time()), "status": "Running"})
        ident, job = mine.reserve_job(key, nickname, False, False)
        if ident is None:
            time.sleep(0.5)
            continue
        _tell(taken=ident)
        inside = _control()  # that of the process which fetches
        inside.ident = ident
        for number in range(3):
            mine.heartbeat(ident)
            entry = {"type": "download", "ts": time.time(), "url": f"{job['url']}{number}", "response_code": 200}
            inside.log({**entry, "wget_code": "OK", "is_error": False, "is_warning": False}, ident, job["log_key"])
            inside.update_items_downloaded(1)
            time.sleep(0.7)
        info = {name: job.get(name) for name in _FIELDS}
        info.update(aborted=False, pipeline_id=key)
        mine.mark_done({"ident": ident, "info": info, "log_key": job["log_key"]}, _EXPIRE_S)
        _tell(done=ident)


def listen(ident):
    """As its plugin for wpull does."""
    known, held = None, settings.Settings()
    settings.Listener(url, held, _control(), ident).start()
    while True:
        now = dict(held.settings, ignores=len(held.ignoracle.patterns))
        if now != known:
            known = now
            _tell(**now)
        time.sleep(0.05)


{"work": work, "listen": listen}[verb](*given)
