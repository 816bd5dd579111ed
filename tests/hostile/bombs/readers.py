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
    "JSON Lines": ("seed/lines.py",),
    "sitemap": ("seed/sitemap.py",),
    "Parquet": ("parquet.py", "record/captures.py"),
    "WARC": (
        *("reading/unpacking.py", "archive/lines/post_key.py", "archive/index/sidecar/text.py"),
        *("archive/index/sidecar/findings.py", "crawl/reconstruct.py"),
    ),
    "CDXJ": (
        *("archive/lines/line_reader.py", "archive/lines/shapes.py", "archive/index/lookup/query.py"),
        *("archive/index/merging/join.py", "archive/index/merging/sides.py"),
        *("archive/report/inputs.py", "archive/report/rows.py", "archive/report/years.py"),
        "archive/table/convert.py",
    ),
    "zipnum": ("archive/index/zipnum/cluster.py",),
    "summary in JSON": ("archive/report/counts_json.py", "archive/report/sketch.py", "cli/summary.py"),
    "frontier dump": ("meguri/dump.py",),
    "meguri": (
        *("meguri/format/codec.py", "meguri/format/page.py", "meguri/format/strings.py"),
        *("frontier/row_strings.py", "meguri/store/generations.py", "cli/frontier/lookup.py"),
    ),
    "crawl file": (
        *("crawlfile/lines.py", "crawlfile/reading.py", "cli/crawl_target.py"),
        *("cli/share/__init__.py", "fleet/jobs/crawl/specification.py"),
    ),
    "a directory of a crawl": (
        *("cli/explain.py", "crawl/policy.py", "crawl/robots_file.py"),
        *("listing/crawl_json.py", "listing/history.py", "listing/uploaded.py"),
        *("record/journal.py", "record/repair.py", "jsontext.py", "fleet/dashboard/watching.py"),
        "fleet/dashboard/shown_pages.py",
    ),
    "bucket": (
        *("fleet/spark/bucket_objects.py", "fleet/checkpoints/checkpoint.py", "uploads/item_client.py"),
    ),
    "Redis": (
        *(
            "fleet/dashboard/views.py",
            "fleet/jobs/child.py",
            "fleet/jobs/link.py",
            "fleet/database/redis_values.py",
        ),
        *(
            "fleet/logs/job_log.py",
            "fleet/jobs/seedqueue.py",
            "fleet/sharing/creation.py",
            "partition/batch.py",
        ),
        *("fleet/sharing/exchange.py", "fleet/sharing/partition.py"),
        *("fleet/jobs/crawl/joblink.py", "spiders/queue.py"),
    ),
    # What scripts and manifests name: tests/discovery/test_link_sources.py and its hostile cases.
    "HTML": ("discovery/coding.py", "discovery/links.py", "discovery/scripts.py"),
    "HTTP": ("fetch/exchange.py", "fetch/response.py", "message.py"),
}
"""By the format of the yard, or what else its bombs are called."""

OUR_OWN = frozenset({
    # What the same user's program has written on this machine, beside what is checked above.
    *("cli/collection_steps.py", "archive/index/collection/file.py"),
    "fleet/checkpoints/data_directory.py",
    *("partition/outbox.py", "fleet/sharing/worker.py", "crawl/requests.py", "crawl/opening.py"),
    *("crawl/guest/scheduler.py", "fleet/leases/leased.py", "fleet/dashboard/users.py"),
    # The browser of this machine, whose pages are bounded: tests/browser, hostile pages.
    *("browser/devtools.py", "browser/visits.py"),
    # The system's word on a process: /proc.
    "crawl/watching/stopping.py",
    # What one process of a command tells another.
    *("partition/messages.py", "crawl/processes/dealing.py", "crawl/processes/lone_child.py"),
    *("crawl/processes/specification.py", "fleet/spark/driver.py", "fleet/spark/leases.py"),
    "api/crawling.py",
    *("archive/index/merging/spark.py", "archive/spark.py", "archive/table/read_only_sql.py"),
    # Settings, and files of the package.
    *("config.py", "fleet/database/connection.py", "crawlfile/keys.py"),
    *("discovery/ignores.py", "archive/index/sidecar/soft404.py"),
    *("archive/report/document.py", "archive/table/named_queries.py"),
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
