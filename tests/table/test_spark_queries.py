"""The queries that are written for every engine give in Spark what they give in DuckDB."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from spark_engine import needs_spark

PROJECT = Path(__file__).parents[2]

# Spark is started once, in a process of its own: its Java machine ends with it.
_REQUEST_ALL = """
import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from pyspark.sql import SparkSession
from table.queried_captures import write_captures
from table.queried_crawls import write_crawls, write_crawls_table
from table.test_queries import expected

from amicrawl.archive.table.named_queries import named_queries

scratch = Path(sys.argv[1])
files = {
    "captures_twice": write_captures(scratch / "twice" / "captures.parquet", twice=True),
    "captures_crawls": write_crawls(scratch / "crawls" / "captures.parquet"),
    "crawls": write_crawls_table(scratch / "table" / "crawls.parquet"),
}

def stored(value):
    if isinstance(value, datetime):
        return str(value)
    return float(value) if isinstance(value, Decimal) else value

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(
    "spark.sql.session.timeZone", "UTC"
).config("spark.sql.shuffle.partitions", "2").getOrCreate()
chosen = [each for each in named_queries().values() if each.group in {"ways", "pages", "crawls"}]
for each in chosen:
    right = expected(each.name)
    spark.read.parquet(str(files[right["table"]])).createOrReplaceTempView(each.relation)
    found = spark.sql(each.sql(right["parameters"]))
    rows = [[stored(value) for value in row] for row in found.collect()]
    assert found.columns == right["columns"], (each.name, found.columns)
    assert rows == right["rows"], (each.name, rows)
print(len(chosen), "chosen")
spark.stop()
"""


@needs_spark
def test_queries_about_ways_pages_and_two_crawls_give_the_same_in_spark(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _REQUEST_ALL, str(tmp_path)],
        env={
            **os.environ,
            "PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TZ": "UTC",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "20 chosen" in done.stdout
