"""Refusals: why a URL has no canonical form, or cannot be fetched.

A refusal is an answer like any other, so it is a value: nothing in this room raises on a URL.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """What is wrong with a URL, worded to follow "refused: "."""

    CONTROL_CHARACTER = "it contains a control character"
    MALFORMED_ESCAPE = "a percent sign is not followed by two hexadecimal digits"
    NO_SCHEME = "it has no scheme, and no usable base to take one from"
    COLON_IN_FIRST_SEGMENT = "a relative reference may not have a colon in its first segment"
    OTHER_SCHEME = "its scheme is neither http nor https"
    NO_HOST = "it names no host"
    MALFORMED_USERINFO = "what stands before the @ is not well-formed"
    MALFORMED_HOST = "its host is not well-formed"
    MALFORMED_PORT = "its port is not a number"
    PORT_OUT_OF_RANGE = "its port is greater than 65535"
    IPV6_LITERAL = "its host is an IPv6 literal"
    HOST_CHARACTER = "its host has a character that host names may not have"
    HYPHEN = "a label of its host has hyphens where none may be"
    LEADING_MARK = "a label of its host begins with a combining mark"
    JOINER = "a zero-width joiner in its host stands where it joins nothing"
    BIDI = "its host breaks the rule for right-to-left names"
    PUNYCODE = "an xn-- label of its host does not decode to a valid name"
    LONG_NAME = "its host is too long to be converted to ASCII"
    TOO_LONG = "it is longer than a URL may be"


@dataclass(frozen=True, slots=True)
class Refused:
    """A URL was looked at and turned down."""

    reason: Reason
