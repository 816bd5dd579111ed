"""A reference leads to its secret, and nothing else of a secret is ever said."""

from __future__ import annotations

from pathlib import Path

import pytest

from amicrawl.crawlfile import is_reference, resolve
from amicrawl.errors import AmicrawlError, InputError, UsageError


def secret_file(path: Path, content: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_a_variable_of_the_environment_is_a_secret() -> None:
    assert resolve("env:A", Path(), of="proxy", environment={"A": " x\n"}) == " x\n"


@pytest.mark.parametrize("content", [b"ann:pw", b"ann:pw\n", b"ann:pw\r\n", b"\xef\xbb\xbfann:pw"])
def test_a_file_is_a_secret_without_line_end_and_byte_order_mark(tmp_path: Path, content: bytes) -> None:
    secret_file(tmp_path / "s", content)
    assert resolve("file:s", tmp_path, of="proxy") == "ann:pw"
    assert resolve(f"file:{tmp_path / 's'}", Path("/nowhere"), of="proxy") == "ann:pw"


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o644, 0o666])
def test_a_file_that_others_may_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = secret_file(tmp_path / "s", b"geheim", mode)
    with pytest.raises(InputError) as caught:
        resolve("file:s", tmp_path, of="proxy")
    assert str(caught.value) == (
        f"proxy: {path} holds a secret, and others may read or change it. Run: chmod o-rw {path}"
    )


@pytest.mark.parametrize(
    ("reference", "kind", "words"),
    [
        (
            "env:NONE",
            InputError,
            "proxy: the environment variable NONE is not set. Set it and start again.",
        ),
        ("file:none", InputError, "none cannot be read: No such file or directory. Check the path."),
        ("file:.", InputError, "Check the path."),
        ("file:bytes", InputError, "is not UTF-8 text. Check the path."),
        (
            "geheim",
            UsageError,
            'proxy is a secret, given by reference: write "env:NAME" or "file:PATH".',
        ),
        ("env:", UsageError, "by reference"),
    ],
)
def test_what_leads_nowhere_is_said_without_the_secret(
    tmp_path: Path, reference: str, kind: type[AmicrawlError], words: str
) -> None:
    secret_file(tmp_path / "bytes", b"\xffgeheim")
    tmp_path.chmod(0o700)
    with pytest.raises(kind) as caught:
        resolve(reference, tmp_path, of="proxy", environment={})
    assert words in str(caught.value)
    assert str(caught.value).startswith("proxy")
    assert "geheim" not in str(caught.value)
    assert caught.value.__cause__ is None or "geheim" not in repr(caught.value.__cause__)


def test_only_two_forms_are_references() -> None:
    assert [is_reference(text) for text in ("env:A", "file:a", "env:", "file: ", "http://a", "")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
