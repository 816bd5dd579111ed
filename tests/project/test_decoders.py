"""Every call in the package that unpacks bytes has a bound on what comes out, or on what goes in.

A decoder without a limit makes gigabytes of kilobytes. zlib, isal and brotli take one with each call.
Zstandard does not, so it is fed in steps, and what a step can stand for at most is computed here.
"""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

import amicrawl

PACKAGE = Path(amicrawl.__file__).parent

LIBRARIES = frozenset({
    *("zlib", "gzip", "bz2", "lzma", "zipfile", "tarfile", "brotli", "zstandard", "lz4", "snappy"),
    *("isal_zlib", "igzip", "igzip_lib"),
})  # fmt: skip
IMPORTS = LIBRARIES | {"isal", "pyarrow", "pq"}
LIMITS = frozenset({"max_length", "max_output_size", "output_buffer_limit"})
READERS = frozenset({
    *("open", "GzipFile", "IGzipFile", "BZ2File", "LZMAFile", "ZipFile", "TarFile"),
    *("stream_reader", "CompressedInputStream"),
})  # fmt: skip
"""What gives a file that unpacks as it is read; all that is read in its module has a size."""
WHOLE = frozenset({"read", "read1", "readall", "readline", "readlines", "flush"})
TABLES = frozenset({"ParquetFile", "ParquetDataset", "read_table", "read_metadata", "read_schema"})
"""Readers of Parquet that trust what they read."""

_ZSTD, _DEFLATE = 128 * 1024 / 4, 1032
"""Bytes that a byte stands for at most: a block of 4 repeats a byte 128 Ki times (RFC 8878, 3.1.1.2)."""
MOST = 64 << 20
"""Bytes that a step stands for at most."""


class Steps(NamedTuple):
    """Constants of a module: how many bytes its decoder is given at once."""

    sizes: tuple[str | int, ...]
    ratio: float


FED_IN_STEPS = {
    "archive/lines/line_reader.py:_unpacked": Steps(("_STEP",), _DEFLATE),
    "discovery/coding.py:_Zstd.__call__": Steps((256,), _ZSTD),
    "meguri/format/strings.py:_decompressed": Steps(("_SLICE",), _ZSTD),
    "reading/unpacking.py:_Units.pieces": Steps(("_ZSTD_FEED",), _ZSTD),
    "reading/unpacking.py:_Units._some": Steps(("_GZIP_FEED",), _DEFLATE),
    "reading/unpacking.py:_Units._begins_a_record": Steps(("_PROBE",), _ZSTD),
    "seed/source.py:_zstd_pieces": Steps(("_ZSTD_INPUT",), _ZSTD),
}
"""Calls without a limit on their output, by module and function."""
CHECKED_BEFORE = {
    # The frame says how long its content is, and that is compared with the size of the page.
    "meguri/format/codec.py:decompress",
    # The footer, and the pages of a probe, were read and checked by the same class.
    "parquet.py:ParquetTable.__init__",
    "parquet.py:ParquetTable._probe",
}


class _Finder(ast.NodeVisitor):
    """Notes the functions that have a call without a bound."""

    def __init__(self, module: str, tree: ast.Module) -> None:
        self.found: list[str] = []
        self._at = module
        self._within: list[str] = []
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        self._unpacks_files = any(
            _name(call) in READERS and (_owner(call) in LIBRARIES or _name(call) != "open")
            for call in calls
        )
        self._decoders = {
            _name(target)
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and _name(node.value.func) in ("decompressobj", "Decompressor")
            for target in node.targets
        }
        self.visit(tree)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._enter(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._enter(node)

    def _enter(self, node: ast.ClassDef | ast.FunctionDef) -> None:
        self._within.append(node.name)
        self.generic_visit(node)
        self._within.pop()

    def visit_Call(self, node: ast.Call) -> None:
        if self._is_unbounded(node):
            self.found.append(f"{self._at}:{'.'.join(self._within)}")
        self.generic_visit(node)

    def _is_unbounded(self, node: ast.Call) -> bool:
        name, owner = _name(node.func), _owner(node.func)
        keywords = {keyword.arg for keyword in node.keywords}
        if name in {"decompress", "process"} and isinstance(node.func, ast.Attribute):
            return owner in LIBRARIES or not (len(node.args) > 1 or LIMITS & keywords)
        if name == "flush":
            return owner in self._decoders
        if name in WHOLE and self._unpacks_files:
            return not node.args
        if name == "open_input_stream":
            return "compression" not in keywords
        return name in TABLES or name in {"multi_decompress_to_buffer", "copy_stream"}


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _owner(node: ast.expr) -> str:
    return _name(node.value) if isinstance(node, ast.Attribute) else ""


def unbounded(module: str, source: str) -> list[str]:
    """Return, by *module* and function, the calls in *source* that unpack and have no limit."""
    if not re.search(rf"\b(?:{'|'.join(IMPORTS)})\b", source):
        return []
    return _Finder(module, ast.parse(source)).found


@pytest.mark.parametrize(
    "call",
    [
        "zlib.decompress(x)",
        "zlib.decompress(x, 31)",
        "zlib.decompressobj().decompress(x)",
        "brotli.Decompressor().process(x)",
        "self._decoder.process(x[:1024])  # brotli",
        "gzip.open(path).read()",
        "igzip.IGzipFile(fileobj=stream).read1()",
        "zstandard.ZstdDecompressor().stream_reader(x).read()",
        "zstandard.ZstdDecompressor().decompress(x)",
        "zipfile.ZipFile(x).open(name).readlines()",
        "filesystem.open_input_stream(path)  # pyarrow",
        "pq.read_table(path)",
    ],
)
def test_a_call_without_a_bound_is_found(call: str) -> None:
    assert unbounded("x.py", f"def f():\n    {call}\n") == ["x.py:f"]


def test_what_a_decoder_has_left_is_not_flushed() -> None:
    source = "inflate = zlib.decompressobj()\ninflate.decompress(x, 9)\ninflate.flush()\n"
    assert unbounded("x.py", source) == ["x.py:"]


@pytest.mark.parametrize(
    "call",
    [
        "zlib.decompressobj().decompress(x, 16)",
        "brotli.Decompressor().process(x, output_buffer_limit=16)",
        "zstandard.ZstdDecompressor().stream_reader(x).read(16)",
        "zlib.compressobj().flush()",
        "filesystem.open_input_stream(path, compression=None)  # pyarrow",
    ],
)
def test_a_call_with_a_bound_is_not(call: str) -> None:
    assert unbounded("x.py", f"def f():\n    {call}\n") == []


def test_each_call_of_a_decoder_in_the_package_is_bounded() -> None:
    found = {
        call
        for path in sorted(PACKAGE.rglob("*.py"))
        for call in unbounded(path.relative_to(PACKAGE).as_posix(), path.read_text())
    }
    assert found == FED_IN_STEPS.keys() | CHECKED_BEFORE, "give a new one a limit, and take out old ones"


@pytest.mark.parametrize("call", FED_IN_STEPS)
def test_what_is_fed_in_steps_has_small_ones(call: str) -> None:
    path = call.partition(":")[0]
    module = import_module(f"amicrawl.{path.removesuffix('.py').replace('/', '.')}")
    for size in FED_IN_STEPS[call].sizes:
        step = size if isinstance(size, int) else getattr(module, size)
        if isinstance(size, int):
            assert f"+ {size}]" in (PACKAGE / path).read_text()
        assert step * FED_IN_STEPS[call].ratio <= MOST
