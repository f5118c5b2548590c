"""What JSON-LD and manifests refer to."""

from __future__ import annotations

import json

import pytest

from muniment.extract.links import extract
from muniment.extract.structured import json_ld_links
from muniment.model.link import FoundAs as F

URL = "http://site.example/app/manifest.json"
MANIFEST = {
    "name": "http://no/", "start_url": "../?from=app", "icons": [{"src": "i.png", "sizes": "1x1"}, {"src": 3}, "x"],
    "screenshots": [{"src": "s.png"}], "related_applications": [{"url": "https://store/x"}, {}],
    "shortcuts": [{"url": "new", "icons": [{"src": "n.png"}]}], "scope": "/",
}  # fmt: skip
FOUND = [
    ("i.png", F.ICON), ("s.png", F.ICON), ("new", F.MANIFEST_URL), ("n.png", F.ICON), ("../?from=app", F.MANIFEST_URL),
    ("https://store/x", F.MANIFEST_URL),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content_type", "found_as"),
    [("application/manifest+json", F.A), ("application/json", F.MANIFEST), ("", F.MANIFEST)],
)
def test_a_manifest(content_type, found_as):
    assert extract(json.dumps(MANIFEST).encode(), content_type, URL, found_as).links == FOUND


def test_json_that_nothing_takes_for_a_manifest():
    assert extract(json.dumps(MANIFEST).encode(), "application/json", URL).links == []


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "3", "null", '{"icons": 3, "start_url": []}', '"\ud800"', "[" * 100_000]
)
def test_what_is_no_manifest(text):
    payload = text.encode("utf-8", "surrogatepass")
    assert extract(payload, "application/manifest+json", URL).links == []


def json_ld(text):
    found = []
    json_ld_links(text, lambda url, found_as: found.append((url, found_as)))
    assert {found_as for _, found_as in found} <= {F.JSON_LD}
    return [url for url, _ in found]


JSON_LD = [
    ({"@context": "https://schema.org", "@type": "http://x/T", "url": "/a", "image": ["b.png", {"url": "c.png"}]},
     ["/a", "b.png", "c.png"]),
    ({"@id": "https://s/#org", "name": "no", "sameAs": ["https://o/1"], "offers": {"availability": "https://schema.org/InStock"}},
     ["https://s/#org", "https://o/1"]),
    ([{"@graph": [{"whatever": "http://s/deep"}]}, "http://s/bare"], ["http://s/deep", "http://s/bare"]),
    ({"url": "two words", "text": "see http://s/x"}, []),
]  # fmt: skip


@pytest.mark.parametrize(("value", "links"), JSON_LD)
def test_json_ld(value, links):
    assert json_ld(f"\n {json.dumps(value)} ") == links


@pytest.mark.parametrize(
    "text", ["", "{", "{'a': 1}", "[" * 100_000, '{"url":' * 50_000 + '"x"' + "}" * 50_000, "\ufeff[]"]
)
def test_what_is_no_json_ld(text):
    json_ld(text)
