"""The table that the shipped queries are tried on, made from the rows in `data/asked_rows.txt`.

What stands here is written down by hand on purpose, host by host: the queries are judged apart from
the code that makes tables.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS: Final = Path(__file__).parent / "data" / "asked_rows.txt"

PARTITIONS: Final = {
    "E": ("EOT-2012", "IA-001", "warc"),
    "W": ("CC-MAIN-2013-20", "1368696381249", "warc"),
    "D": ("CC-MAIN-2013-20", "1368696381249", "crawldiagnostics"),
    "R": ("CC-MAIN-2013-20", "1368696381249", "robotstxt"),
}

# host: public suffix, registered domain. An address has neither.
HOSTS: Final[dict[str, tuple[str, str] | None]] = {
    "www.esp.alcf.anl.gov": ("gov", "anl.gov"),
    "www.anl.gov": ("gov", "anl.gov"),
    "anl.gov": ("gov", "anl.gov"),
    "www.nrel.gov": ("gov", "nrel.gov"),
    "192.0.2.7": None,
    "example.com": ("com", "example.com"),
    "www.example.com": ("com", "example.com"),
    "examples.com": ("com", "examples.com"),
    "exemple.fr": ("fr", "exemple.fr"),
    "sample.org": ("org", "sample.org"),
    "www.ruv.is": ("is", "ruv.is"),
    "xn--mnchen-3ya.de": ("de", "xn--mnchen-3ya.de"),
    "www.bbc.co.uk": ("co.uk", "bbc.co.uk"),
    "www.magyar.hu": ("hu", "magyar.hu"),
}

TEXT: Final[pa.DataType] = pa.string()
EOT: Final = pa.schema(
    [
        ("url_surtkey", TEXT),
        ("url", TEXT),
        ("url_host_name", TEXT),
        ("url_host_tld", TEXT),
        ("url_host_2nd_last_part", TEXT),
        ("url_host_3rd_last_part", TEXT),
        ("url_host_4th_last_part", TEXT),
        ("url_host_5th_last_part", TEXT),
        ("url_host_registry_suffix", TEXT),
        ("url_host_registered_domain", TEXT),
        ("url_host_private_suffix", TEXT),
        ("url_host_private_domain", TEXT),
        ("url_host_name_reversed", TEXT),
        ("url_protocol", TEXT),
        ("url_port", pa.int32()),
        ("url_path", TEXT),
        ("url_query", TEXT),
        ("fetch_time", pa.timestamp("ms")),
        ("fetch_status", pa.int16()),
        ("content_digest", TEXT),
        ("content_mime_type", TEXT),
        ("content_mime_detected", TEXT),
        ("content_charset", TEXT),
        ("content_languages", TEXT),
        ("content_puid", TEXT),
        ("warc_filename", TEXT),
        ("warc_record_offset", pa.int64()),
        ("warc_record_length", pa.int64()),
        ("warc_segment", TEXT),
        ("crawl", TEXT),
        ("subset", TEXT),
    ]
)
CCINDEX: Final = pa.schema(
    [field for field in EOT if field.name != "content_puid"]
    + [pa.field("fetch_redirect", TEXT), pa.field("content_truncated", TEXT)]
)


def rows() -> list[dict[str, Any]]:
    """Return all rows with the columns of both schemas, in the order of the table."""
    ends: dict[str, int] = {}
    found = []
    for line in ROWS.read_text().splitlines():
        if line.startswith("#"):
            continue
        partition, url, time, status, *rest = line.split(" ")
        declared, detected, charset, languages, puid, digest, length, truncated, redirect = (
            None if each == "-" else each for each in rest
        )
        crawl, segment, subset = PARTITIONS[partition]
        file = f"crawl-data/{crawl}/segments/{segment}/{subset}/{crawl}-{segment}.warc.gz"
        offset = ends.get(file, 0)
        ends[file] = offset + int(length or 0)
        found.append(
            {
                **_url_columns(url),
                "fetch_time": datetime.strptime(time, "%Y%m%d%H%M%S"),  # noqa: DTZ007  # as in the table
                "fetch_status": int(status),
                "content_digest": digest,
                "content_mime_type": declared,
                "content_mime_detected": detected,
                "content_charset": charset,
                "content_languages": languages,
                "content_puid": puid,
                "content_truncated": truncated,
                "fetch_redirect": redirect,
                "warc_filename": file,
                "warc_record_offset": offset,
                "warc_record_length": int(length or 0),
                "warc_segment": segment,
                "crawl": crawl,
                "subset": subset,
            }
        )
    return sorted(
        found, key=lambda row: (row["crawl"], row["subset"], row["url_surtkey"], row["fetch_time"])
    )


def cdxj_lines() -> Iterator[str]:
    """Yield the lines of an index that the table is made of, merged with what sidecars say."""
    fields = {
        "mime": "content_mime_type",
        "digest": "content_digest",
        "filename": "warc_filename",
        "mime-detected": "content_mime_detected",
        "charset": "content_charset",
        "languages": "content_languages",
        "puid": "content_puid",
        "truncated": "content_truncated",
        "redirect": "fetch_redirect",
    }
    for row in sorted(rows(), key=lambda row: (row["url_surtkey"], row["fetch_time"])):
        said = {"url": row["url"]} | {key: row[name] for key, name in fields.items() if row[name]}
        if row["fetch_status"] >= 0:
            said["status"] = str(row["fetch_status"])
        said |= {"offset": str(row["warc_record_offset"]), "length": str(row["warc_record_length"])}
        yield f"{row['url_surtkey']} {row['fetch_time']:%Y%m%d%H%M%S} {json.dumps(said)}\n"


def write_partitions(directory: Path, schema: pa.Schema = EOT) -> Path:
    """Write the rows to `crawl=.../subset=.../part-00000.parquet` below *directory*, and return it."""
    in_files = pa.schema([field for field in schema if field.name not in {"crawl", "subset"}])
    for crawl, _, subset in dict.fromkeys(PARTITIONS.values()):
        chosen = [row for row in rows() if (row["crawl"], row["subset"]) == (crawl, subset)]
        folder = directory / f"crawl={crawl}" / f"subset={subset}"
        folder.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(chosen, schema=in_files), folder / "part-00000.parquet")
    return directory


def write_file(path: Path, schema: pa.Schema = EOT) -> Path:
    """Write all rows to the one file *path*, and return it."""
    pq.write_table(pa.Table.from_pylist(rows(), schema=schema), path)
    return path


def _url_columns(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    known = HOSTS[host]
    labels = host.split(".")[::-1] if known else []
    padded: list[str | None] = [*labels, *[None] * 5]
    suffix, domain = known or (None, None)
    port = f":{parts.port}" if parts.port else ""
    key = ",".join((labels or host.split(".")[::-1]) if host else [])
    key = key.removesuffix(",www") + f"{port}){(parts.path.rstrip('/') or '/').lower()}"
    return {
        "url_surtkey": f"{key}?{parts.query}" if parts.query else key,
        "url": url,
        "url_host_name": host,
        "url_host_tld": padded[0],
        "url_host_2nd_last_part": padded[1],
        "url_host_3rd_last_part": padded[2],
        "url_host_4th_last_part": padded[3],
        "url_host_5th_last_part": padded[4],
        "url_host_registry_suffix": suffix,
        "url_host_registered_domain": domain,
        "url_host_private_suffix": suffix,
        "url_host_private_domain": domain,
        "url_host_name_reversed": ".".join(labels) or None,
        "url_protocol": parts.scheme,
        "url_port": parts.port,
        "url_path": parts.path,
        "url_query": parts.query or None,
    }
