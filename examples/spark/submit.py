"""amicrawl over a Spark cluster: what is given to spark-submit.

    spark-submit --master spark://head:7077 examples/spark/submit.py index /data/warc -o /data/cdxj
    spark-submit --master yarn examples/spark/submit.py table s3://bucket/cdxj -o s3://bucket/table
    spark-submit --master yarn examples/spark/submit.py crawl s3://bucket/seeds.parquet -o s3://bucket/run

Arguments are those of `amicrawl`, and `--engine spark` is added: the commands are `index`,
`collection`, `merge`, `table`, `cdx zipnum`, `summary` and `crawl`. Every worker needs amicrawl with
its extra (`pip install 'amicrawl[spark]'`); how it gets there is in docs/table.md.
"""

from __future__ import annotations

import sys

from amicrawl.cli import main

if __name__ == "__main__":
    sys.argv.extend(["--engine", "spark"])
    main()
