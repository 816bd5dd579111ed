"""Scrapy's TLS settings, read for our handler; one that it cannot follow is refused."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from amicrawl.config import TlsPolicy
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from amicrawl.capture import Tls
    from amicrawl.fetch.tls import TlsSettings

logger = logging.getLogger(__name__)

_VERSIONS = ("TLSv1.0", "TLSv1.1", "TLSv1.2", "TLSv1.3")
_FACTORY = "DOWNLOADER_CLIENTCONTEXTFACTORY"
_VERIFYING = "scrapy.core.downloader.contextfactory.BrowserLikeContextFactory"


def policy_of(settings: BaseSettings) -> TlsPolicy:
    """Return what becomes of an untrusted certificate; raises UsageError for a foreign factory."""
    factory = settings.get(_FACTORY)
    if settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES") or factory == _VERIFYING:
        return TlsPolicy.VERIFY
    if factory and (settings.getpriority(_FACTORY) or 0) > 0:
        raise UsageError(
            f"{_FACTORY} is {factory!r}, which makes connections of Twisted's, and the add-on makes its "
            "own. Leave it out; DOWNLOAD_VERIFY_CERTIFICATES, DOWNLOAD_TLS_MIN_VERSION, _MAX_VERSION "
            "and DOWNLOADER_CLIENT_TLS_CIPHERS are followed."
        )
    return TlsPolicy.RECORD


def tls_settings_of(settings: BaseSettings) -> TlsSettings:
    """Return what is offered to servers; raises ValueError for an unknown version, as Scrapy does."""
    from amicrawl.fetch.tls import TlsSettings  # noqa: PLC0415  # OpenSSL takes long to load

    minimum = _version(settings, "DOWNLOAD_TLS_MIN_VERSION")
    maximum = _version(settings, "DOWNLOAD_TLS_MAX_VERSION")
    method = settings["DOWNLOADER_CLIENT_TLS_METHOD"]
    if minimum is None and maximum is None and method in _VERSIONS:
        minimum = maximum = method
    ciphers = settings["DOWNLOADER_CLIENT_TLS_CIPHERS"] or "DEFAULT"
    return TlsSettings(ciphers=ciphers, minimum=minimum, maximum=maximum, key_log=_key_log())


def _key_log() -> Path | None:
    """Return the file that the environment names for session keys, if it can be written."""
    name = "" if sys.flags.ignore_environment else os.environ.get("SSLKEYLOGFILE", "")
    if not name:
        return None
    try:
        with Path(name).open("ab"):
            return Path(name)
    except OSError as error:
        logger.warning("Cannot write TLS session keys to %s: %s", name, error)
        return None


def say_how(host: str, tls: Tls) -> None:
    """Log how the connection to *host* is secured."""
    version = tls.version.replace("tls/", "TLSv")
    logger.debug("SSL connection to %s using protocol %s, cipher %s", host, version, tls.cipher)


def _version(settings: BaseSettings, name: str) -> str | None:
    version: str | None = settings[name]
    if version is not None and version not in _VERSIONS:
        raise ValueError(f"Unknown {name} value: {version}")
    return version
