"""URLs: what is fetched for one, and which others count as the same. Pure; all other rooms stand on it.

A URL has up to four readings here, and none of them changes the URL itself:

* `fetchable(url)`: what is requested. The URL as found, with no more encoded than HTTP requires; that is
  its name in the archive. `resolve(base, location)` gives the URL that a redirect leads to.
* `canonicalize(url)`: its canonical form, one spelling for all that are taken for the same page, exactly
  as in the frontier files that other software writes. `canonical_form(url)` adds an extension for what
  those rules refuse although it can be fetched.
* `url_key(url, identity)`: the 128 bits that stand for it in a frontier.
* `surt(url)`: the key by which archives sort their captures.

A URL that has no such reading gives a `Refused` with its `Reason`; nothing here raises on a URL. URLs
are `str` or `bytes`; octets that are not UTF-8 survive as lone surrogates (`grammar.py`). To read on,
begin with `canonical.py`.
"""

# mypy: implicit-reexport
from amicrawl.urls.canonical import (
    MOST_PIECES,
    Canonical,
    Policy,
    canonical_form,
    canonicalize,
)
from amicrawl.urls.fetchable import (
    Base,
    Fetchable,
    fetchable,
    host_name,
    resolve,
    with_scheme,
    without_userinfo,
)
from amicrawl.urls.grammar import WHITE_SPACE, Reason, Refused, octets, text_of
from amicrawl.urls.host import is_loopback
from amicrawl.urls.key import (
    Grouping,
    UrlKey,
    covered_by_rules,
    exceptions,
    host_group,
    host_key,
    path_key,
    registrable_domain,
    seed_key,
    shard_of,
    url_key,
)
from amicrawl.urls.surt import surt
