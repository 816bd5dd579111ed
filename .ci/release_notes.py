"""Print what CHANGELOG.md says of the version that a tag names.

    release_notes.py TAG

Exit code 1, with a sentence, where the tag is not that of the version in the files, or the changelog
has no section for it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class ReleaseError(Exception):
    """The files and the tag do not agree; the message says where."""


def version_in_files(root: Path = ROOT) -> str:
    """Return the version that all files name; raises ReleaseError where they differ."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    package = re.search(
        r'^__version__ = "(.*)"$', (root / "amicrawl" / "__init__.py").read_text(), re.MULTILINE
    )
    lock = tomllib.loads((root / "uv.lock").read_text())
    locked = next(each["version"] for each in lock["package"] if each["name"] == "amicrawl")
    found = {
        "pyproject.toml": project,
        "amicrawl/__init__.py": package and package[1],
        "uv.lock": locked,
    }
    if len(set(found.values())) > 1:
        named = ", ".join(f"{file} has {version}" for file, version in found.items())
        raise ReleaseError(f"The files name several versions: {named}.")
    return str(project)


def notes_of(tag: str, *, root: Path = ROOT) -> str:
    """Return the section of the changelog for *tag*, `v` and the version; raises ReleaseError."""
    version = version_in_files(root)
    if tag != f"v{version}":
        raise ReleaseError(f"The tag is {tag}, and the files have version {version}: tag v{version}.")
    sections = re.split(r"^## ", (root / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    for section in sections:
        heading, _, text = section.partition("\n")
        if re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", heading.strip()):
            return text.strip() + "\n"
    raise ReleaseError(f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`.")


def main(arguments: list[str]) -> int:
    """Print the notes of the tag in *arguments*; return the exit code."""
    try:
        sys.stdout.write(notes_of(*arguments))
    except (ReleaseError, TypeError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
