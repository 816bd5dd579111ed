"""Which modules read what others made, and by which bombs of the yard each is tried.

A module counts as a reader if it calls what unpacks or parses; so one that is new is found, and has to
be put here.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import amicrawl

PACKAGE = Path(amicrawl.__file__).parent
CALLS = frozenset({
    *("loads", "JSONDecoder", "parsed", "parsed_file", "parsed_toml", "literal_eval"),
    *("decompress", "decompressobj", "decompressor", "stream_reader"),
    *("read_bytes", "read_text", "ParquetFile", "feed", "fromstring", "XMLPullParser"),
})  # fmt: skip
"""What unpacks, parses, or reads a whole file."""

READERS: dict[str, tuple[str, ...]] = {
    "lines": ("seed/fields.py", "crawl/seedlist.py", "spiders/seeds.py"),
    "gzip": ("seed/source.py",),
    "JSON Lines": ("seed/jsonl.py",),
    "sitemap": ("seed/sitemap.py",),
    "Parquet": ("parquet.py", "record/captures.py"),
    "WARC": (
        *("index/reading/unpacking.py", "index/lines/post_key.py", "index/sidecar/text.py"),
        *("index/sidecar/findings.py", "crawl/reconstruct.py"),
    ),
    "CDXJ": (
        *("index/lines/shapes.py", "index/lookup/query.py"),
        *("index/merging/join.py", "index/merging/sides.py"),
        *("report/inputs.py", "report/rows.py", "report/years.py"),
        "table/convert.py",
    ),
    "zipnum": ("index/zipnum/cluster.py",),
    "summary in JSON": ("report/counts_json.py", "report/sketch.py", "cli/summary.py"),
    "frontier dump": ("frontier/dump.py",),
    "meguri": (
        *("frontier/format/codec.py", "frontier/format/page.py", "frontier/format/strings.py"),
        *("frontier/row_strings.py", "frontier/store/generations.py", "cli/frontier/lookup.py"),
    ),
    "crawl file": (
        *("crawlfile/lines.py", "crawlfile/reading.py", "cli/crawl.py"),
        *("cli/share.py", "crawl/job/specification.py"),
    ),
    "a directory of a crawl": (
        *("cli/explain.py", "crawl/policy.py", "crawl/robots.py"),
        *("record/crawl_json.py", "record/uploaded.py"),
        *("record/journal.py", "record/reader.py", "record/repair.py", "jsontext.py"),
    ),
    "bucket": ("crawl/spark/bucket_objects.py", "jobs/checkpoint.py"),
    "Redis": (
        *("dashboard/views.py", "jobs/child.py", "jobs/link.py", "jobs/redis_values.py"),
        *("jobs/logs.py", "jobs/seedqueue.py", "jobs/sharing/creation.py", "jobs/sharing/batch.py"),
        *("crawl/sharing/exchange.py", "crawl/sharing/sharing.py"),
        *("crawl/job/joblink.py", "spiders/queue.py"),
    ),
    "HTML": ("discovery/coding.py",),
    "HTTP": ("fetch/exchange.py", "fetch/response.py", "message.py"),
}
"""By the format of the yard, or what else its bombs are called."""

OUR_OWN = frozenset({
    # What the same user's program has written on this machine, beside what is checked above.
    *("cli/collection_steps.py", "index/collection/file.py", "jobs/data_directory.py"),
    *("jobs/sharing/outbox.py", "jobs/sharing/worker.py", "crawl/requests.py", "crawl/opening.py"),
    *("crawl/guest/scheduler.py", "crawl/job/leased.py", "dashboard/users.py"),
    # What one process of a command tells another.
    *("crawl/processes/child.py", "crawl/processes/dealing.py", "crawl/processes/parent.py"),
    "crawl/processes/specification.py",
    *("crawl/spark/driver.py", "crawl/spark/leases.py", "crawl/spark/partition.py"),
    *("index/merging/spark.py", "index/spark.py", "table/read_only_sql.py"),
    # Settings, and files of the package.
    *("jobs/connection.py", "crawlfile/keys.py"),
    *("discovery/ignores.py", "index/sidecar/soft404.py"),
    *("report/page.py", "table/named_queries.py"),
})  # fmt: skip
"""Modules that read nothing of strangers."""


def reading_modules() -> set[str]:
    """Return the paths, within the package, of all modules that call what unpacks or parses."""
    may_call = re.compile(rf"\b(?:{'|'.join(CALLS)})\(").search
    return {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if may_call(text := path.read_text()) and not CALLS.isdisjoint(_called(ast.parse(text)))
    }


def _called(tree: ast.Module) -> set[str]:
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        for function in functions
    }
