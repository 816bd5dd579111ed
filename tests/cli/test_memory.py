"""Where no memory is left, a command says so, and blames no file for it."""

from __future__ import annotations

import ast
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loopback import environment

import amicrawl
from amicrawl.errors import ExitCode
from amicrawl.jsontext import parsed_file
from amicrawl.record.table import CAPTURES

_SHORT = """
import re, resource, sys
import amicrawl.cli, amicrawl.cli.crawl_facts, amicrawl.cli.inspect
spare, *sys.argv[1:] = sys.argv[1:]
taken = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (taken + (int(spare) << 20),) * 2)
from amicrawl.__main__ import main
main()
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return an index whose rows take more memory than the command is given."""

    def value(kind: pa.DataType) -> object:
        return "x" * 500 if pa.types.is_string(kind) else pa.scalar(1).cast(kind).as_py()

    rows = pa.Table.from_pylist([{field.name: value(field.type) for field in CAPTURES}], CAPTURES)
    many = pa.concat_tables([rows] * 20_000).combine_chunks()
    pq.write_table(many, tmp_path / "captures.parquet", compression="zstd")
    return tmp_path / "captures.parquet"


def _run(*words: object, spare: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _SHORT, str(spare), *map(str, words)],
        env=environment() | {"ARROW_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_a_command_without_memory_ends_with_a_sentence(table: Path) -> None:
    done = _run("inspect", "-n", 20_000, table, spare=24)
    assert "Traceback" not in done.stderr
    assert "No memory was left" in done.stderr
    assert "Parquet" not in done.stderr
    assert done.returncode == ExitCode.OUTPUT


_FAILING = """
import errno, sys
class Finder:
    def find_spec(self, name, *_):
        if name == "amicrawl.cli.url":
            exec("raise " + sys.argv[-1])
sys.meta_path.insert(0, Finder())
sys.argv[1:] = ["url", sys.argv[1]]
from amicrawl.__main__ import main
main()
"""


def _failing(fault: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", _FAILING, fault]
    return subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    ["MemoryError", 'RuntimeError("can\'t start new thread")', "OSError(errno.ENOMEM, 'no room')"],
)
def test_no_room_for_a_thread_or_a_library_ends_with_the_same_sentence(fault: str) -> None:
    done = _failing(fault)
    assert done.stderr.startswith("amicrawl: No memory was left"), done.stderr
    assert done.returncode == ExitCode.OUTPUT


def test_other_errors_of_these_classes_stay_what_they_are() -> None:
    assert "RuntimeError: 1" in _failing("RuntimeError(1)").stderr


def test_a_small_file_of_json_takes_little_room(tmp_path: Path) -> None:
    (tmp_path / "policy.json").write_text('{"a": 1}')
    tracemalloc.start()
    assert parsed_file(tmp_path / "policy.json") == {"a": 1}
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


_CATCHING_ALL_OF_ARROW = "pa.ArrowException"


def test_no_handler_takes_want_of_memory_for_a_damaged_file() -> None:
    seen = 0
    for path in Path(amicrawl.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Try):
                continue
            caught = [ast.unparse(handler.type) for handler in node.handlers if handler.type]
            for number, words in enumerate(caught):
                if _CATCHING_ALL_OF_ARROW in words:
                    seen += 1
                    assert "MemoryError" in caught[:number], f"{path}:{node.lineno}: {words}"
    assert seen
