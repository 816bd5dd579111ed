"""The table of all behaviours that a list crawl meets at once."""

from __future__ import annotations

from hostile.bad_tls import BAD_TLS
from hostile.lies_about_content import LIES_ABOUT_CONTENT
from hostile.odd_messages import ODD_MESSAGES
from hostile.redirects_astray import REDIRECTS_ASTRAY
from hostile.slow_and_broken import SLOW_AND_BROKEN

BEHAVIOURS = (
    *SLOW_AND_BROKEN,
    *ODD_MESSAGES,
    *LIES_ABOUT_CONTENT,
    *REDIRECTS_ASTRAY,
    *BAD_TLS,
)
