"""Certificates for the browser's side of the proxy: one key and one certificate, in memory alone.

Chromium is started with the hash of the key (`--ignore-certificate-errors-spki-list`) and takes a
certificate of it for any host; no store of trusted certificates has it. What the server's own
certificate is, the wire checks and records.
"""

from __future__ import annotations

import base64
import hashlib
import os
import ssl
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

_VALID = timedelta(days=365)


class KeyOfProxy:
    """A fresh key, and what a server needs to speak TLS by it."""

    def __init__(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.key_hash = base64.b64encode(hashlib.sha256(public).digest()).decode()
        """SHA-256 of the public key (SPKI), base64: what Chromium is started with."""
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "amicrawl, for its own browser")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + _VALID)
            .sign(key, hashes.SHA256())
        )
        self.context = _server_context(
            certificate.public_bytes(Encoding.PEM),
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        )
        """For the server's side of TLS connections from the browser; HTTP/1.1 only."""


def _server_context(certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Return a context with *certificate* and *key* (PEM), which never lie in a file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    # The ssl module reads both from paths alone: these are of pipes, whose buffers hold 64 KiB.
    certificate_end, key_end = _pipe_with(certificate), _pipe_with(key)
    try:
        context.load_cert_chain(f"/dev/fd/{certificate_end}", f"/dev/fd/{key_end}")
    finally:
        os.close(certificate_end)
        os.close(key_end)
    return context


def _pipe_with(content: bytes) -> int:
    """Return the end of a pipe from which *content* can be read."""
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    return reading
