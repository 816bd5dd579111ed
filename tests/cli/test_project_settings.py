"""A project's settings are found where Scrapy finds them, which is called here as well."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from loopback import PROJECT, environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NAMES = ("REDIS_URL", "REDIS_PORT", "REDIS_PARAMS", "REDIS_HOST")

# Ours comes first: Scrapy leaves what it found in the environment.
_REQUEST_BOTH = f"""
import json, os, sys
from amicrawl.cli.project import project_settings

names = {NAMES}
cases = json.load(sys.stdin)
base, found, path = dict(os.environ), [], list(sys.path)
for case in cases:
    os.environ.clear()
    os.environ.update(base | case["environment"])
    os.chdir(case["directory"])
    sys.path[:] = path + case["path"]
    ours = project_settings(names)
    sys.path[:] = path + case["path"]
    from scrapy.utils.project import get_project_settings
    theirs = get_project_settings()
    found.append([ours, {{name: theirs.get(name) for name in names if theirs.get(name)}}])
print(json.dumps(found))
"""


def project(directory: Path, module: str, *, text: str = "", section: str = "") -> Path:
    """Make a Scrapy project in *directory*, with settings in *module*."""
    directory.mkdir(parents=True)
    url = f"REDIS_URL = 'redis://{module}/'\n"
    (directory / f"{module}.py").write_text(url + "REDIS_PORT = 1\nREDIS_HOST = ''\n" + text)
    (directory / "scrapy.cfg").write_text(f"[settings]\n{section or 'default'} = {module}\n")
    return directory


def requested(*cases: tuple[Path, Mapping[str, str]], home: Path) -> list[list[dict[str, Any]]]:
    """Return what ours and Scrapy find in each of *cases*, a directory and what the environment adds."""
    given = [
        {"directory": str(place), "environment": dict(added), "path": [str(home)]}
        for place, added in cases
    ]
    clean = {name: value for name, value in environment().items() if name != "XDG_CONFIG_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", _REQUEST_BOTH],
        env={**clean, "PYTHONPATH": str(PROJECT), "HOME": str(home)},
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return found


def test_settings_are_found_where_scrapy_finds_them(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    here = project(tmp_path / "here", "settings_here", text="REDIS_PARAMS = {'socket_timeout': 3}\n")
    below = here / "a" / "b"
    below.mkdir(parents=True)
    other = project(tmp_path / "other", "settings_other", section="other")
    home = project(tmp_path / "home", "settings_home")
    (home / "scrapy.cfg").rename(home / "kept.cfg")
    config = tmp_path / "config"
    config.mkdir()
    (config / "scrapy.cfg").write_text("[settings]\ndefault = settings_home\n")
    cases: list[tuple[Path, Mapping[str, str]]] = [
        (nowhere, {}),
        (here, {}),
        (below, {}),
        (here, {"SCRAPY_SETTINGS_MODULE": ""}),
        (other, {}),
        (other, {"SCRAPY_PROJECT": "other"}),
        (here, {"SCRAPY_SETTINGS_MODULE": "amicrawl.settings"}),
        (nowhere, {"XDG_CONFIG_HOME": str(config)}),
        (here, {"XDG_CONFIG_HOME": str(config)}),
    ]
    found = requested(*cases, home=home)
    assert [ours for ours, _ in found] == [theirs for _, theirs in found]
    modules = [ours.get("REDIS_URL", "").removeprefix("redis://settings_")[:-1] for ours, _ in found]
    assert modules == ["", "here", "here", "", "", "other", "", "home", "here"]
    assert found[1][0]["REDIS_PARAMS"] == {"socket_timeout": 3}


def test_a_crawl_in_a_project_ends_as_the_manual_says_unless_it_has_a_command_of_its_own(
    tmp_path: Path,
) -> None:
    text = "ADDONS = {'amicrawl.crawl.addon.ArchiveAddon': 300}\nTELNETCONSOLE_ENABLED = False\n"
    here = project(tmp_path / "here", "settings_here", text=text)
    own = project(tmp_path / "own", "settings_own", text=text + "COMMANDS_MODULE = 'commands_own'\n")
    (own / "commands_own").mkdir()
    (own / "commands_own" / "__init__.py").touch()
    (own / "commands_own" / "crawl.py").write_text(
        "from scrapy.commands import crawl\n\n\nclass Command(crawl.Command):\n"
        "    def run(self, args, opts):\n        print('our own', *args)\n"
    )
    (tmp_path / "list.txt").write_text("http://127.0.0.1:9/\n")
    line = ["-m", "amicrawl", "crawl", str(tmp_path / "list.txt"), "-s", "AMICRAWL_DELYA=1"]
    ended = [
        subprocess.run(
            [sys.executable, *line],
            cwd=directory,
            env={**environment(), "PYTHONPATH": str(PROJECT)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        for directory in (here, own)
    ]
    assert [(done.returncode, done.stdout) for done in ended] == [(2, ""), (0, "our own seeds\n")]
    said = "amicrawl: Unknown setting AMICRAWL_DELYA. Did you mean AMICRAWL_DELAY?"
    assert ended[0].stderr.splitlines()[-1] == said
