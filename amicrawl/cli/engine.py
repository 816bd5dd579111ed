"""What does the work, this machine or a Spark cluster: the options `--engine` and `--master`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Engine(StrEnum):
    """What does the work."""

    LOCAL = "local"
    SPARK = "spark"


EngineOption = Annotated[Engine, typer.Option(help="This machine, or a Spark cluster.")]
Master = Annotated[
    str,
    typer.Option(help="Spark master URL; spark-submit's by default.", metavar="URL"),
]
