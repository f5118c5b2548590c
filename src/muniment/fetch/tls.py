"""TLS: one context for all connections, and the names of what was agreed."""

from __future__ import annotations

import asyncio
import ssl
import warnings

from muniment.errors import UsageError

__all__ = ["iana_cipher_name", "make_context", "session_names"]

# The name that OpenSSL gives a cipher's key exchange and authentication, and the one of IANA's registry. From TLS 1.3
# on the two agree on whole names. PSK and SRP are left out: they need a secret that a crawler has not.
_EXCHANGES = (
    ("ECDHE-ECDSA-", "ECDHE_ECDSA"),
    ("ECDHE-RSA-", "ECDHE_RSA"),
    ("ECDHE-", "ECDHE_RSA"),
    ("DHE-RSA-", "DHE_RSA"),
    ("DHE-DSS-", "DHE_DSS"),
    ("AECDH-", "ECDH_anon"),
    ("ADH-", "DH_anon"),
    ("", "RSA"),
)
_ALGORITHMS = {
    "CHACHA20-POLY1305": "CHACHA20_POLY1305_SHA256",
    "DES-CBC3-SHA": "3DES_EDE_CBC_SHA",
    "RC4-SHA": "RC4_128_SHA",
    "RC4-MD5": "RC4_128_MD5",
    "SEED-SHA": "SEED_CBC_SHA",
    "NULL-SHA": "NULL_SHA",
    "NULL-SHA256": "NULL_SHA256",
    "NULL-SHA384": "NULL_SHA384",
    "NULL-MD5": "NULL_MD5",
}

_OP_LEGACY_SERVER_CONNECT = 0x4
"""Of OpenSSL; Python names it from 3.12 on."""


def make_context(*, insecure: bool = False, ca_file: str = "") -> ssl.SSLContext:
    """The client context; raises UsageError when `ca_file` cannot be read.

    It is made once: loading the certificates costs more than many requests.
    """
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise UsageError(f"cannot read the certificates of {ca_file}: {error.strerror or error}") from error
    # Newer Pythons are stricter than browsers here; what can be archived must not depend on the interpreter.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        _take_old_protocols(context)
    return context


def _take_old_protocols(context: ssl.SSLContext) -> None:
    """Speak down to TLS 1.0, with any cipher, key and way to renegotiate, as old servers want it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.options |= _OP_LEGACY_SERVER_CONNECT


def iana_cipher_name(name: str) -> str:
    """IANA's name of a cipher suite that OpenSSL names otherwise."""
    if name.startswith("TLS_"):
        return name
    for prefix, exchange in _EXCHANGES:
        if name.startswith(prefix):
            return f"TLS_{exchange}_WITH_{_algorithm(name[len(prefix) :])}"
    return name


def _algorithm(name: str) -> str:
    if name in _ALGORITHMS:
        return _ALGORITHMS[name]
    parts = name.split("-")
    cipher = parts[0]
    for family in ("AES", "CAMELLIA", "ARIA"):
        if cipher.startswith(family) and cipher != family:
            cipher = f"{family}_{cipher[len(family) :]}"
    rest = parts[1:]
    if rest and rest[0].startswith("CCM"):
        return f"{cipher}_CCM_8" if rest[0] == "CCM8" else f"{cipher}_CCM"
    if rest[:1] != ["GCM"]:
        cipher += "_CBC"
    return "_".join([cipher, *rest])


def session_names(transport: asyncio.BaseTransport) -> tuple[str, str]:
    """`tls/1.3` and the cipher's IANA name; two empty strings for a plain connection."""
    tls = transport.get_extra_info("ssl_object")
    if tls is None:
        return "", ""
    cipher = tls.cipher()
    version = (tls.version() or "").lower().removeprefix("tlsv")
    return f"tls/{version}" if "." in version else f"tls/{version}.0", iana_cipher_name(cipher[0]) if cipher else ""
