"""A crawl file says what it and the files that it extends say together."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from amicrawl.crawlfile import examine, read_crawl_file
from amicrawl.crawlfile.crawl_file import effective

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def sentences(path: Path) -> list[str]:
    return [str(fault).replace(f"{path.parent}/", "") for fault in examine(path, is_part=True).faults]


def test_tables_merge_key_by_key_and_lists_are_replaced(tmp_path: Path) -> None:
    write(
        tmp_path / "common.toml",
        "public = false\n[politeness]\ndelay = 9\nper_host = 2\n"
        "[scope]\ninclude = ['a', 'b']\n[host.'a.example']\ndelay = 5\nper_host = 3\n",
    )
    file = read_crawl_file(
        write(
            tmp_path / "gov.toml",
            "extends = 'common.toml'\n[seeds]\nurl = 'https://a.example/'\n"
            "[politeness]\ndelay = 3\n[scope]\ninclude = ['c']\n[host.'a.example']\ndelay = 7\n",
        )
    )
    assert file.spider == "site"
    assert file.arguments == {"url": "https://a.example/"}
    assert file.settings == {
        "AMICRAWL_DELAY": 3,
        "AMICRAWL_PER_HOST": 2,
        "AMICRAWL_INCLUDE": ["c"],
        "AMICRAWL_HOST_OVERRIDES": {"a.example": {"delay": 7, "per_host": 3}},
    }


def test_of_several_files_the_later_one_wins_and_the_file_itself_over_all(tmp_path: Path) -> None:
    write(tmp_path / "a.toml", "[politeness]\ndelay = 1\nper_host = 1\nmax_retries = 1\n")
    write(tmp_path / "b.toml", "[politeness]\ndelay = 2\nper_host = 2\n")
    gov = write(
        tmp_path / "gov.toml",
        "public = false\nextends = ['a.toml', 'b.toml']\n[politeness]\ndelay = 3\n",
    )
    settings = read_crawl_file(gov).settings
    assert settings == {"AMICRAWL_DELAY": 3, "AMICRAWL_PER_HOST": 2, "AMICRAWL_MAX_RETRIES": 1}


def test_a_path_starts_from_the_file_in_which_it_stands(tmp_path: Path) -> None:
    write(
        tmp_path / "base/common.toml",
        "[seeds]\nfile = 'seeds.txt'\n"
        "[request]\ncookies = 'file:c.txt'\n[output]\nout = 'o'\n[watch]\nwebhooks = "
        "['file:hook', 'https://a.example/b']\n",
    )
    file = read_crawl_file(
        write(tmp_path / "gov/gov.toml", "public = false\nextends = '../base/common.toml'\n")
    )
    base = tmp_path / "gov/../base"
    assert file.arguments == {"file": str(base / "seeds.txt")}
    assert file.settings == {
        "AMICRAWL_COOKIES": f"file:{base / 'c.txt'}",
        "AMICRAWL_OUT": "o",
        "AMICRAWL_WEBHOOKS": [f"file:{base / 'hook'}", "https://a.example/b"],
    }


def test_a_fault_below_is_said_with_its_own_file_and_line(tmp_path: Path) -> None:
    write(tmp_path / "common.toml", "\n[politeness]\ndealy = 1\n")
    gov = write(tmp_path / "gov.toml", "extends = 'common.toml'\nx = 1\n")
    assert sentences(gov) == [
        "gov.toml, line 2: unknown key x outside of any table.",
        "common.toml, line 3: unknown key dealy in [politeness]. Did you mean delay?",
    ]


def test_a_circle_is_told_and_not_walked(tmp_path: Path) -> None:
    write(tmp_path / "b.toml", "extends = 'a.toml'\n")
    (said,) = sentences(write(tmp_path / "a.toml", "extends = 'b.toml'\n"))
    assert said == "b.toml, line 1: extends goes round in a circle: a.toml extends this file, or is it."


def test_a_file_that_is_not_there_is_told_where_it_is_named(tmp_path: Path) -> None:
    (said,) = sentences(write(tmp_path / "a.toml", "extends = [\n'b.toml',\n]\n"))
    assert said == (
        "a.toml, line 2: extends: Crawl file b.toml cannot be read: No such file or directory. "
        "Check the path."
    )


def test_files_extend_one_another_eight_deep_and_not_deeper(tmp_path: Path) -> None:
    write(tmp_path / "0.toml", "public = false\n")
    for n in range(1, 10):
        write(tmp_path / f"{n}.toml", f"extends = '{n - 1}.toml'\n")
    assert sentences(tmp_path / "8.toml") == []
    assert sentences(tmp_path / "9.toml") == [
        "1.toml, line 1: extends goes deeper than 8 files. Let this one extend fewer in a row."
    ]


def test_files_that_fan_out_are_not_read_without_end(tmp_path: Path) -> None:
    write(tmp_path / "0.toml", "public = false\n")
    for n in range(1, 8):
        write(tmp_path / f"{n}.toml", f"extends = {[f'{n - 1}.toml'] * 8}\n")
    said = sentences(tmp_path / "7.toml")
    assert said
    assert all("more than 64 files are extended in all" in line for line in said)


def test_what_is_written_out_says_the_same_without_extending(tmp_path: Path) -> None:
    write(
        tmp_path / "common.toml",
        "public = false\n[politeness]\ndelay = 2.5\n"
        '[request]\noperator = "Ann \\"x\\" \\\\ é"\ncookies = "file:c"\nfields = {"X-Y" = '
        '"1", Z = "2"}\n',
    )
    gov = write(
        tmp_path / "gov.toml",
        "extends = 'common.toml'\n[seeds]\nfile = 's.txt'\n"
        "strict = true\n[scope]\ninclude = ['\\d', \"'\"]\n[host.'a.example']\nauth = 'env:A'\n",
    )
    sheet = examine(gov).sheet
    text = effective(sheet, directory=tmp_path)
    assert "extends" not in tomllib.loads(text)
    again = examine(write(tmp_path / "elsewhere/whole.toml", text)).sheet
    assert {key: entry.value for key, entry in again.entries.items()} == {
        key: entry.value for key, entry in sheet.entries.items()
    }
    assert "delay = 2.5  # " in text
    assert "common.toml, line 3" in text
