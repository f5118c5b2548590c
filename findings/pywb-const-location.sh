#!/bin/sh
# One would guess that a rewriter of scripts leaves declarations alone. pywb 2.10.0 takes `const location = …` for an
# assignment and puts a call before the value that reads `location`, which does not exist yet: a function of a router
# that was fine live throws a ReferenceError in the replay. `layout(location = 0)` of a shader, a string in a script, is
# rewritten, too, and does not compile then.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/env"
"$place/env/bin/pip" install --quiet --disable-pip-version-check --no-deps pywb==2.10.0
"$place/env/bin/pip" install --quiet --disable-pip-version-check \
    brotli==1.2.1 fakeredis==2.41.0 jinja2==3.1.6 portalocker==4.4.2 pyyaml==6.0.4 requests==2.34.2 setuptools==65.5.0 \
    six==1.17.0 surt==0.3.1 tldextract==5.4.0 warcio==1.8.1 webencodings==0.6.1 2>"$place/notes"
cat >"$place/rewrite.py" <<'PYTHON'
import sys

from pywb.rewrite.regex_rewriters import JSWombatProxyRewriter
from pywb.rewrite.url_rewriter import UrlRewriter

rewriter = JSWombatProxyRewriter(UrlRewriter("20260101mp_/http://example.test/", "/archive/"))
print(rewriter.rewrite(sys.argv[1]))
PYTHON
cat >"$place/run.js" <<'SCRIPT'
// As in a replayed page, where wombat has defined this.
globalThis.self = globalThis;
self.__WB_check_loc = () => null;
try {
  console.log(new Function(process.argv[2])());
} catch (error) {
  console.log(`${error.name}: ${error.message}`);
}
SCRIPT
route='const location = { path: "/a" }; return location.path;'
rewritten=$("$place/env/bin/python" -W ignore "$place/rewrite.py" "$route")
before=$(node "$place/run.js" "$route")
after=$(node "$place/run.js" "$rewritten")
shader=$("$place/env/bin/python" -W ignore "$place/rewrite.py" 'const text = "layout(location = 0) in vec4 place;";')
echo "pywb 2.10.0 makes of: $route"
echo "  $rewritten"
echo "  run before: $before"
echo "  run after:  $after"
echo "  a shader:   $shader"
[ "$before" = /a ]
[ "$after" = "ReferenceError: Cannot access 'location' before initialization" ]
case $shader in *'layout(location = ((self.__WB_check_loc'*) ;; *) exit 1 ;; esac
