"""The headers that hold pages in: our own pages run nothing of others, archived ones reach nothing but their origin."""

from __future__ import annotations

__all__ = ["DROPPED", "content_headers", "download_headers", "front_headers", "shown_headers", "worker_headers"]

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-DNS-Prefetch-Control": "off",
}
_FORBIDDEN = "camera=(), microphone=(), geolocation=(), usb=(), serial=(), hid=(), midi=(), payment=()"
_OWN_ORIGIN = "(response-origin);redirects=allow"
"""For Chromium of 2026 and later: no connection to elsewhere, also by what no other policy holds, as preconnect."""
DROPPED = frozenset({
    "alt-svc", "clear-site-data", "connection", "connection-allowlist", "connection-allowlist-report-only",
    "content-security-policy", "content-security-policy-report-only",
    "cross-origin-embedder-policy", "cross-origin-opener-policy", "cross-origin-resource-policy", "date", "keep-alive",
    "link", "nel", "origin-agent-cluster", "permissions-policy", "proxy-authenticate", "referrer-policy", "refresh",
    "report-to", "reporting-endpoints", "server", "service-worker-allowed", "set-cookie", "sourcemap",
    "speculation-rules", "strict-transport-security", "transfer-encoding", "www-authenticate", "x-content-type-options",
    "x-dns-prefetch-control", "x-frame-options", "x-sourcemap", "access-control-allow-origin",
    "access-control-allow-credentials", "supports-loading-mode", "critical-ch", "accept-ch",
})  # fmt: skip
"""What an archived site said to a browser about itself, and what belongs to one connection."""


def front_headers(*content: str) -> dict[str, str]:
    """The headers of our own pages; they may frame the origins of archived pages alone, if there are any."""
    framed = " ".join(filter(None, content)) or "'none'"
    policy = (
        "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; "
        "form-action 'self'; base-uri 'none'; "
        f"frame-ancestors 'none'; frame-src {framed}"
    )
    return {**_ALWAYS, "Content-Security-Policy": policy, "X-Frame-Options": "DENY", "Cache-Control": "no-store"}


def download_headers(name: str) -> dict[str, str]:
    """The headers of stored bytes, which are never shown."""
    return {
        **_ALWAYS,
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "no-store",
    }


def content_headers(front: str) -> dict[str, str]:
    """The headers of archived pages: every request goes to their own origin, and only the front may frame them."""
    policy = (
        "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' data: blob:; "
        "frame-src 'self'; worker-src 'self' blob: data:; form-action 'self'; object-src 'none'; "
        f"frame-ancestors 'self' {front}"
    )
    return {
        **_ALWAYS,
        "Connection-Allowlist": _OWN_ORIGIN,
        "Content-Security-Policy": policy,
        "Permissions-Policy": _FORBIDDEN,
        "Cache-Control": "no-store",
    }


def shown_headers(front: str) -> dict[str, str]:
    """The headers that the worker puts on what it answers.

    Types are read as the archived site had them read, and pages see the archived page that links to them.
    """
    left_out = {"X-Content-Type-Options", "Referrer-Policy"}
    kept = {name: value for name, value in content_headers(front).items() if name not in left_out}
    return {**kept, "Referrer-Policy": "same-origin"}


def worker_headers() -> dict[str, str]:
    """The headers of the worker itself, which asks the archive alone."""
    policy = "default-src 'none'; script-src 'self'; connect-src 'self'"
    return {**_ALWAYS, "Content-Security-Policy": policy, "Cache-Control": "no-store"}
