"""A certificate authority that lives in memory: clients that trust it are shown a certificate of any host."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import os
import ssl
from collections import OrderedDict
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["CertificateAuthority"]

_MOST_HOSTS = 500
"""Hosts whose contexts are kept; each takes some 20 KB."""
_DAYS = timedelta(days=30)
_EARLIER = timedelta(days=1)
"""Clocks may differ, and a run may begin in the minute in which it is asked."""
_LONGEST_NAME = 64
"""Characters of a common name (RFC 5280); the alternative name has the whole host in any case."""


class CertificateAuthority:
    """Makes certificates of hosts; its keys are never on a disk, and end with the process."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._own_certificate()
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)
        """Its certificate, for clients that are to trust it."""
        spki = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.spki_sha256 = base64.b64encode(hashlib.sha256(spki).digest()).decode()
        """Its key, as Chromium's `--ignore-certificate-errors-spki-list` names it."""

    def context(self, host: str) -> ssl.SSLContext:
        """A server's context with a certificate of this host name or address (IPv6 without brackets)."""
        context = self._contexts.get(host)
        if context is None:
            context = self._contexts[host] = self._make_context(host)
            if len(self._contexts) > _MOST_HOSTS:
                self._contexts.popitem(last=False)
        else:
            self._contexts.move_to_end(host)
        return context

    def _own_certificate(self) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Muniment {os.urandom(4).hex()}")])
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        public = self._key.public_key()
        return (
            _builder(name, name, public)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _leaf(self, host: str) -> x509.Certificate:
        common = [x509.NameAttribute(NameOID.COMMON_NAME, host)] if len(host) <= _LONGEST_NAME else []
        public, own = self._leaf_key.public_key(), self._key.public_key()
        return (
            _builder(x509.Name(common), self._certificate.subject, public)
            .add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=not common)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(own), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _make_context(self, host: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        key = self._leaf_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        _load(context, key + self._leaf(host).public_bytes(serialization.Encoding.PEM) + self.pem)
        return context


def _builder(subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + _DAYS)
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _load(context: ssl.SSLContext, chain: bytes) -> None:
    """`ssl` takes keys from files alone: this one is in memory, and without a name."""
    memory = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(memory, chain)
        context.load_cert_chain(f"/proc/self/fd/{memory}")
    finally:
        os.close(memory)
