"""The index or the table of a collection on a Spark cluster: what is given to spark-submit.

    spark-submit --master spark://head:7077 examples/spark/submit.py --index /data/warc -o /data/cdxj
    spark-submit --master spark://head:7077 examples/spark/submit.py /data/merged -o /data/table
    spark-submit --master yarn examples/spark/submit.py s3a://bucket/merged/*.cdxj -o s3a://bucket/table

Inputs and output are paths that every worker sees under the same name, or URIs that Spark has a file
system for. For paths, files are those of `amicrawl index` and `amicrawl table` on one machine; to URIs,
Spark's own writer writes the same rows and columns of a table; an index needs paths. Every worker needs
amicrawl with its extra: `pip install 'amicrawl[spark]'`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from amicrawl.cli import app
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError
from amicrawl.index.lines.line_reader import files_in
from amicrawl.table import SCHEMAS, Place, TableOptions
from amicrawl.table.spark import make_table_on_spark, session, table_frame, write_anywhere


def main(arguments: list[str]) -> int:
    """Make the index or the table and return the exit code."""
    parser = argparse.ArgumentParser(description="Index a collection, or make its table, with Spark.")
    parser.add_argument("inputs", nargs="+", help="CDXJ files, directories of them, or URIs")
    parser.add_argument("-o", "--out", required=True, help="directory or URI of the table")
    parser.add_argument(
        "--index", action="store_true", help="inputs are WARC or ARC files: index each into --out"
    )
    parser.add_argument("--schema", choices=sorted(SCHEMAS), default="eot")
    parser.add_argument("--flat", action="store_true", help="crawl and subset as columns in the files")
    parser.add_argument("--crawl", help="the crawl of all rows")
    parser.add_argument("--segment", help="their segment")
    parser.add_argument("--subset", help="their subset")
    parser.add_argument("--partitions", type=int, default=0, help="ranges that keys are cut into")
    parser.add_argument("--master", default="", help="where spark-submit does not say it")
    given = parser.parse_args(arguments)
    try:
        return _index(given) if given.index else _table(given)
    except AmicrawlError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


def _index(given: argparse.Namespace) -> int:
    where = ["--engine", "spark", "--master", given.master]
    return int(app(["index", *given.inputs, "-o", given.out, *where], standalone_mode=False) or 0)


def _table(given: argparse.Namespace) -> int:
    options = TableOptions(
        schema=SCHEMAS[given.schema],
        place=Place(given.crawl, given.segment, given.subset),
        flat=given.flat,
    )
    with session(given.master) as spark:
        if "://" in given.out:
            write_anywhere(table_frame(spark, given.inputs, options), given.out, options)
            return 0
        files = files_in([Path(name) for name in given.inputs])
        report = make_table_on_spark(
            spark, files, Path(given.out), disk=Disk(), options=options, partitions=given.partitions
        )
    sys.stdout.write(
        f"{report.rows:,} rows in {report.files:,} files, {report.rejects:,} lines rejected.\n"
    )
    return 5 if report.rejects else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
