"""Lines of indexes to summarise, and shorthands to do so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from amicrawl.archive.report.batch import batch_of_rows
from amicrawl.archive.report.counting import counted
from amicrawl.archive.report.counts import CORRECTED, Counts, added
from amicrawl.archive.report.line_batches import Legends, cdx_lines
from amicrawl.archive.report.rows import Row

if TYPE_CHECKING:
    import pyarrow as pa

DIGEST = "SUYN7XTFAOFZ7RB6PQSUDVXZV6DPKAS3"


def cdx11(
    key: str = "com,example)/",
    time: str = "20121026215942",
    url: str = "http://example.com/",
    mime: str = "text/html",
    status: str = "200",
    *,
    digest: str = DIGEST,
    redirect: str = "-",
    size: str = "1219",
) -> str:
    """Return one line of eleven columns."""
    return f"{key} {time} {url} {mime} {status} {digest} {redirect} - {size} 771 a.warc.gz"


def counts_of(*lines: str, rules: str = CORRECTED) -> Counts:
    """Return the counts of *lines* of one CDX file."""
    block = "".join(f"{line}\n" for line in lines).encode()
    parts = (cdx_lines(piece, rules=rules) for piece in Legends().pieces(block))
    return added(
        [Counts(rules=rules), *(counted(p.batch, rules=rules, skipped=p.skipped) for p in parts)]
    )


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    """Return the rows of *batch*, facets left out."""
    return [
        Row(
            key=row["key"],
            time=row["time"],
            url=row["url"] or b"",
            mime=row["mime"] or b"-",
            status=row["status"],
            size=row["size"],
            digest=row["digest"] or b"-",
        )
        for row in batch.to_pylist()
    ]


_TOKENS = st.one_of(
    st.sampled_from(
        [
            "-",
            "200",
            "404",
            "99",
            "0200",
            "text/html",
            "com,example)/",
            "com,example)/a?b&c",
            "dns:example.com",
            "20121026215942",
            "20121026215942123",
            "20121399000000",
            "20120230000000",
            "0x10",
            "1e3",
            "",
            "+5",
            "-5",
            "12345678901234",
            "example.com/a",
            ")",
            "org,example:8080)//x//",
            "http://b1/",
            "é",
            "99999999999999",
        ]
    ),
    st.text(alphabet="ab1,)/?&-. \t", max_size=6),
)

_GOOD = st.builds(
    cdx11,
    st.sampled_from(
        ["com,example)/", "com,example)/a?b", "net,x)/p/q/", "org,a)/robots.txt", "dns:a.org"]
    ),
    st.sampled_from(["20121026215942", "20130101000000", "20130131235959"]),
    st.sampled_from(["http://example.com/", "http://h:80/a", "https://x.org/?q"]),
    st.sampled_from(["text/html", "image/png", "warc/revisit"]),
    st.sampled_from(["200", "404", "-", "301"]),
    digest=st.sampled_from([DIGEST, "AAAA", "-"]),
    redirect=st.sampled_from(["-", "-", "http://b1/"]),
    size=st.sampled_from(["12", "-", "30000"]),
)

_BAD = st.lists(_TOKENS, min_size=1, max_size=13).map(" ".join)
_CUT = st.builds(
    lambda line, column: " ".join(line.split(" ")[:column]), _GOOD, st.sampled_from([7, 9, 10, 11])
)
_SPOILT = st.builds(
    lambda line, column, token: " ".join(
        [*line.split(" ")[:column], token, *line.split(" ")[column + 1 :]]
    ),
    _GOOD,
    st.integers(0, 10),
    _TOKENS,
)

CDX_LINES = st.lists(
    st.one_of(_GOOD, _GOOD, _SPOILT, _BAD, _CUT).filter(lambda line: "CDX" not in line), max_size=12
)
"""Lines good and bad, in any order."""

GOOD_LINES = st.lists(_GOOD, max_size=30)


def batch_like(rows: list[Row]) -> list[Row]:
    """Return *rows* as they come out of a batch."""
    return rows_of(batch_of_rows(rows))
