"""TLS: one context for all connections, sessions resumed per host, one handshake under any policy.

OpenSSL's verdict on each certificate of a chain is taken by a callback. Under `TlsPolicy.VERIFY` the
first fault ends the handshake; under `TlsPolicy.RECORD` it is noted and the handshake continues. So both
policies have the same verdict, and neither needs a second connection (the `ssl` module can only end the
handshake, or not look). The name of the host is compared afterwards (RFC 9525), before a request is
sent.

Bytes in, bytes out: the sockets are `connection`'s.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cryptography import x509
from OpenSSL import SSL, crypto
from service_identity import CertificateError, VerificationError
from service_identity.hazmat import DNS_ID, DNSPattern, verify_service_identity

from amicrawl.capture import Failure, Tls
from amicrawl.config import TlsPolicy
from amicrawl.errors import UsageError
from amicrawl.fetch.failures import TlsError, one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_RECORD = 16 * 1024
"""Bytes of data in one TLS record, at most (RFC 8446, section 5.1)."""
_RECORD_HEADER = 5
"""Bytes before each record: its type, its version and, in the last two, its length."""
_SUITES = b"TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
"""The suites of TLS 1.3 in the order of browsers (RFC 8446, appendix B.4).

OpenSSL's own begins with SHA-384, for which processors have no instructions, unlike SHA-256: a handshake
takes 4 % longer."""
_SESSIONS = 10_000
_LEGACY_SERVER_CONNECT = 0x4  # OpenSSL's name: also talk to servers without RFC 5746, as Scrapy does
_VERSIONS = {
    "TLSv1.0": SSL.TLS1_VERSION,
    "TLSv1.1": SSL.TLS1_1_VERSION,
    "TLSv1.2": SSL.TLS1_2_VERSION,
    "TLSv1.3": SSL.TLS1_3_VERSION,
}
_UNREADABLE = (x509.DuplicateExtension, x509.InvalidVersion, x509.UnsupportedGeneralNameType)
_FAULTS = {
    number: name.removeprefix("ERR_").replace("_", " ").lower()
    for name, number in vars(SSL.X509VerificationCodes).items()
    if name.startswith("ERR_")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """What is offered to servers; the defaults are OpenSSL's, but for the order of TLS 1.3's suites."""

    ciphers: str = "DEFAULT"
    """A cipher list in OpenSSL's notation, for the versions before TLS 1.3."""
    minimum: str | None = None
    """The oldest version, `TLSv1.0` to `TLSv1.3`."""
    maximum: str | None = None
    """The newest version."""
    key_log: Path | None = None
    """A file that session keys are appended to, by lines as of `SSLKEYLOGFILE`."""


class _Known(NamedTuple):
    """A session that can be resumed, and what its handshake has shown."""

    session: SSL.Session
    tls: Tls


class TlsClient:
    """Makes the layers of all TLS connections.

    *ca_file* is a PEM file of trusted certificates in place of the system's. Raises UsageError for a
    file or a setting that OpenSSL does not take.
    """

    def __init__(self, *, ca_file: Path | None, settings: TlsSettings) -> None:
        context = SSL.Context(SSL.TLS_CLIENT_METHOD)
        context.set_options(_LEGACY_SERVER_CONNECT)
        context.set_mode(SSL.MODE_RELEASE_BUFFERS)
        context.set_verify(SSL.VERIFY_PEER, _on_certificate)
        context.set_alpn_protos([b"http/1.1"])
        context.set_tls13_ciphersuites(_SUITES)
        _set_up(context, settings)
        if ca_file is None:
            context.set_default_verify_paths()
        else:
            try:
                context.load_verify_locations(str(ca_file))
            except SSL.Error as error:
                raise UsageError(
                    f"{ca_file} is not a PEM file of certificates. Name one that is."
                ) from error
        self._context = context
        self._sessions: OrderedDict[str, _Known] = OrderedDict()

    def layer(self, host: str, port: int, policy: TlsPolicy) -> TlsLayer:
        """Return a layer for a connection to *host*; a session with it is resumed."""
        key = f"{host}:{port}"
        known = self._sessions.get(key)
        if known is not None and policy is TlsPolicy.VERIFY and not known.tls.verified:
            known = None

        def keep(session: SSL.Session, tls: Tls) -> None:
            self._sessions[key] = _Known(session, tls)
            self._sessions.move_to_end(key)
            if len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)

        return TlsLayer(self._context, host, policy=policy, known=known, keep=keep)


class _Check:
    """What is found out about the certificates that one server shows."""

    __slots__ = ("done", "endures", "fault")

    def __init__(self, *, endures: bool) -> None:
        self.endures = endures
        """Whether the handshake continues with a certificate that is not trusted."""
        self.fault = ""
        """What the first certificate that is not trusted lacks."""
        self.done = False
        """Whether a certificate was presented: it is not where a session was resumed."""


class TlsLayer:
    """One TLS connection: encrypts and decrypts, and shakes hands before."""

    def __init__(
        self, context: SSL.Context, host: str, *, policy: TlsPolicy, known: _Known | None,
        keep: Callable[[SSL.Session, Tls], None],
    ) -> None:  # fmt: skip
        self.established = False
        self.ended = False
        """Whether the peer has announced the end."""
        self.fault = ""
        """What broke TLS behind the data that was returned last; empty where nothing did."""
        self.tls: Tls
        """What was negotiated, once established."""
        self._check = _Check(endures=policy is TlsPolicy.RECORD)
        self._held = b""
        """Data that waits for the end of another handshake."""
        self._missing: int | None = 0
        """Bytes to come of the record that was received last; None where its header was cut."""
        self._host = host
        self._known = known
        self._keep: Callable[[SSL.Session, Tls], None] | None = keep
        self._ssl = SSL.Connection(context, None)
        self._ssl.set_app_data(self._check)
        self._ssl.set_connect_state()

    def start(self, send: Callable[[bytes], None]) -> None:
        """Begin the handshake; *send* takes the bytes for the peer. Raises TlsError."""
        self._send: Callable[[bytes], None] | None = send
        # A name is sent without the dot that makes it absolute, and an address not at all (RFC 6066).
        self._host = self._host.rstrip(".")
        self._is_address = _is_address(self._host)
        if not self._is_address:
            self._ssl.set_tlsext_host_name(self._host.encode("ascii"))
        if self._known is not None:
            self._ssl.set_session(self._known.session)
        self._shake_hands()

    def encrypt(self, data: bytes | memoryview) -> bytes:
        """Return what goes over the connection for *data*.

        A server of TLS 1.2 may have begun another handshake: what OpenSSL does not take until its end is
        sent by `decrypt`.
        """
        if self._held:
            self._held += data
            return b""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._ssl.send(rest) :]
        except SSL.WantReadError:
            self._held = bytes(rest)
        return self._pending()

    def decrypt(self, data: bytes) -> bytes:
        """Take *data* from the connection and return what it holds for above.

        Raises TlsError where it cannot be read. Where some of it can, that is returned, and `fault` set.
        """
        if not data:
            return b""
        # A memory BIO takes everything.
        self._ssl.bio_write(data)
        records = self._records(data)
        was_established = self.established
        if not was_established:
            self._shake_hands()
            if not self.established:
                return b""
        pieces = self._read(records)
        if was_established and not pieces:
            # Something of TLS itself that may want a reply: new keys, or another handshake (TLS 1.2).
            self._flush()
        if self._held:
            held, self._held = self._held, b""
            if (sent := self.encrypt(held)) and self._send is not None:
                self._send(sent)
        if pieces and self._keep is not None:
            session = self._ssl.get_session()
            if session is not None:
                self._keep(session, self.tls)
            self._keep = None
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Announce the end, as far as that is possible."""
        if self.established and not self.ended and self._send is not None:
            try:
                self._ssl.shutdown()
            except SSL.Error:
                pass
            else:
                self._flush()
        self._send = None

    def _records(self, data: bytes) -> int | None:
        """Count the records that *data* completes; None where it ends within one, or may do so."""
        if self._missing is None:
            return None
        at, count = self._missing, 1 if self._missing else 0
        while at + _RECORD_HEADER <= len(data):
            at += _RECORD_HEADER + int.from_bytes(data[at + 3 : at + _RECORD_HEADER])
            count += 1
        self._missing = at - len(data) if at >= len(data) else None
        return None if self._missing else count

    def _read(self, records: int | None) -> list[bytes]:
        """Return what the records that came hold: at most *records* pieces, where all of them are whole.

        To read once more costs as much as a record: OpenSSL finds nothing, and raises.
        """
        pieces: list[bytes] = []
        try:
            while len(pieces) != records:
                pieces.append(self._ssl.recv(_RECORD))
        except SSL.WantReadError:
            pass
        except SSL.ZeroReturnError:
            self.ended = True
        except SSL.Error as error:
            fault = _sentence(error)
            if not pieces:
                is_refusal = fault.endswith(_REFUSALS)
                failure = Failure.TLS_HANDSHAKE if is_refusal else Failure.CONNECTION_RESET
                raise TlsError(fault, failure) from None
            self.fault = fault
        return pieces

    def _shake_hands(self) -> None:
        """Take the next step; what the last one has for the server is sent with the first request."""
        try:
            self._ssl.do_handshake()
        except SSL.WantReadError:
            self._flush()
            return
        except SSL.Error as error:
            self._flush()
            check = self._check
            if check.fault and not check.endures:
                raise TlsError(f"The certificate: {check.fault}.", Failure.TLS_CERTIFICATE) from None
            raise TlsError(_sentence(error)) from None
        self._judge()
        self.established = True

    def _judge(self) -> None:
        """Set `tls`; raises TlsError for a certificate of another host that must be trusted."""
        version, cipher = _version(self._ssl), self._ssl.get_cipher_name() or ""
        if not self._check.done and self._known is not None:
            earlier = self._known.tls
            self.tls = Tls(version, cipher, earlier.verified, earlier.fault, earlier.certificate)
            return
        certificate = self._ssl.get_peer_certificate()
        der = b"" if certificate is None else crypto.dump_certificate(crypto.FILETYPE_ASN1, certificate)
        fault = self._check.fault
        if not fault and not _is_for(self._host, _names_in(der), is_address=self._is_address):
            fault = "it is not for this host"
        if fault and not self._check.endures:
            raise TlsError(f"The certificate: {fault}.", Failure.TLS_CERTIFICATE)
        self.tls = Tls(version, cipher, not fault, fault, der)

    def _flush(self) -> None:
        data = self._pending()
        if data and self._send is not None:
            self._send(data)

    def _pending(self) -> bytes:
        pieces = []
        try:
            while True:
                pieces.append(self._ssl.bio_read(2 * _RECORD))
                if len(pieces[-1]) < 2 * _RECORD:
                    break
        except SSL.WantReadError:
            pass
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _on_certificate(
    connection: SSL.Connection, _: crypto.X509, code: int, _depth: int, is_fine: int
) -> bool:
    check: _Check = connection.get_app_data()
    check.done = True
    if not is_fine and not check.fault:
        check.fault = _FAULTS.get(code, f"fault {code}")
    return bool(is_fine) or check.endures


class _CertificateNames(NamedTuple):
    """What a certificate is for."""

    hosts: frozenset[str] = frozenset()
    """In lower case; a wildcard stands for a whole label."""
    addresses: frozenset[ipaddress.IPv4Address | ipaddress.IPv6Address | Any] = frozenset()


@lru_cache(maxsize=1024)
def _names_in(certificate: bytes) -> _CertificateNames:
    """Return what *certificate* (DER) says in `subjectAltName`; nothing where it cannot be read."""
    # Some have a hundred, which take a millisecond to read, and are shown by a hundred hosts.
    try:
        extensions = x509.load_der_x509_certificate(certificate).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound, *_UNREADABLE):
        return _CertificateNames()
    return _CertificateNames(
        frozenset(map(str.lower, names.get_values_for_type(x509.DNSName))),
        frozenset(names.get_values_for_type(x509.IPAddress)),
    )


def _is_for(host: str, names: _CertificateNames, *, is_address: bool) -> bool:
    """Return whether *names* are those of a certificate for *host* (RFC 9525, section 6.3)."""
    if is_address:
        return ipaddress.ip_address(host) in names.addresses
    host = host.lower()
    wildcard = f"*.{host.partition('.')[2]}"
    if host in names.hosts or wildcard not in names.hosts:
        return host in names.hosts
    try:
        pattern = DNSPattern.from_bytes(wildcard.encode())
        verify_service_identity(cert_patterns=[pattern], obligatory_ids=[DNS_ID(host)], optional_ids=[])
    except (VerificationError, CertificateError, ValueError):
        return False
    return True


def _set_up(context: SSL.Context, settings: TlsSettings) -> None:
    if (key_log := settings.key_log) is not None:

        def log(_: SSL.Connection, line: bytes) -> None:
            with key_log.open("ab") as file:
                file.write(line + b"\n")

        context.set_keylog_callback(log)
    for version, limit in (
        (settings.minimum, context.set_min_proto_version),
        (settings.maximum, context.set_max_proto_version),
    ):
        if version is None:
            continue
        if version not in _VERSIONS:
            raise UsageError(f"{version!r} is not a TLS version. Use one of {', '.join(_VERSIONS)}.")
        limit(_VERSIONS[version])
    if settings.ciphers != "DEFAULT":
        try:
            context.set_cipher_list(settings.ciphers.encode())
        except SSL.Error as error:
            raise UsageError(f"OpenSSL has no cipher in the list {settings.ciphers!r}.") from error


def _version(connection: SSL.Connection) -> str:
    number = connection.get_protocol_version_name().partition("v")[2]
    return f"tls/{number if '.' in number else number + '.0'}"


def _is_address(host: str) -> bool:
    # Nearly all names end in a letter, and `ipaddress` takes long to say that one is not an address.
    if ":" not in host and not host[-1:].isdigit():
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


_REFUSALS = tuple(
    f"alert {alert}." for alert in ("certificate required", "bad certificate", "handshake failure")
)
"""How a server ends a handshake that is over here: under TLS 1.3 it judges the client's part last."""


def _sentence(error: SSL.Error) -> str:
    reasons = error.args[0] if error.args else ()
    if isinstance(reasons, list | tuple) and reasons:
        return one_line(f"TLS: {reasons[-1][-1]}.")
    return "The connection was ended in the middle of TLS."
