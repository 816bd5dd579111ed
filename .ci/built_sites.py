"""Build the applications of tests/replay/apps from npm, and keep each as a ZIP file of the tests' data.

    .venv/bin/python .ci/built_sites.py

The tests need no npm: what is built is in the repository, as a browser gets it. The same packages give
the same bytes.
"""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

PROJECT = Path(__file__).parents[1]
SOURCES = PROJECT / "tests" / "replay" / "apps"
BUILD = PROJECT / "build" / "sites"
DATA = PROJECT / "tests" / "data" / "built_sites"
LONG_AGO = (1980, 1, 1, 0, 0, 0)


def main() -> None:
    """Build and pack each."""
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(SOURCES, BUILD / "apps")
    for words in (["install", "--no-audit", "--no-fund"], ["run", "build"]):
        subprocess.run(["npm", *words], cwd=BUILD / "apps", check=True)  # noqa: S603, S607
    for built in sorted((BUILD / "built").iterdir()):
        with zipfile.ZipFile(
            DATA / f"{built.name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9
        ) as file:
            for path in sorted(path for path in built.rglob("*") if path.is_file()):
                member = zipfile.ZipInfo(path.relative_to(built).as_posix(), LONG_AGO)
                file.writestr(member, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main()
