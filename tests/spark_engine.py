"""Where tests with a real Spark run: in `make test-spark`, which has Java and the extra."""

from __future__ import annotations

import os

import pytest

needs_spark = pytest.mark.skipif(
    "AMICRAWL_SPARK_TESTS" not in os.environ, reason="Spark's tests are run by make test-spark"
)
