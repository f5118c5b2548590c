#!/bin/sh
# One would guess that an index for replay has a line for answers that can be shown, since `--post-append` tells methods
# apart. cdxj-indexer 1.5.0 writes plain lines for the answers to HEAD and OPTIONS beside that to GET, under the same key
# and with statuses 200 and 204; PUT alone gets a key of its own. A page that asked `HEAD` of itself after its load has
# an empty body at the latest time. Whoever writes an index for a player leaves these two methods out.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/env"
"$place/env/bin/pip" install --quiet --disable-pip-version-check cdxj-indexer==1.5.0 warcio==1.8.1
cat >"$place/make.py" <<'PYTHON'
import io
import sys

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

ANSWERS = {"GET": ("200 OK", b"<p>a page</p>"), "HEAD": ("200 OK", b""), "OPTIONS": ("204 No Content", b""), "PUT": ("200 OK", b"")}
with open(sys.argv[1], "wb") as out:
    writer = WARCWriter(out, gzip=True)
    for number, (method, (status, body)) in enumerate(ANSWERS.items()):
        date = {"WARC-Date": f"2026-01-01T00:00:0{number}Z"}
        asked = StatusAndHeaders(f"{method} /app HTTP/1.1", [("Host", "example.test")], is_http_request=True)
        got = StatusAndHeaders(status, [("Content-Type", "text/html")], protocol="HTTP/1.1")
        pair = [
            writer.create_warc_record("http://example.test/app", kind, payload=io.BytesIO(payload), http_headers=head, warc_headers_dict=date)
            for kind, payload, head in (("request", b"", asked), ("response", body, got))
        ]
        writer.write_request_response_pair(*pair)
PYTHON
"$place/env/bin/python" "$place/make.py" "$place/methods.warc.gz"
"$place/env/bin/cdxj-indexer" --post-append "$place/methods.warc.gz" | cut -d' ' -f1,2 >"$place/seen"
cat >"$place/expected" <<'LINES'
test,example)/app 20260101000000
test,example)/app 20260101000001
test,example)/app 20260101000002
test,example)/app?__wb_method=put&__wb_post_data= 20260101000003
LINES
echo "cdxj-indexer 1.5.0: GET, HEAD, OPTIONS and PUT of one address become"
cat "$place/seen"
cmp "$place/expected" "$place/seen"
