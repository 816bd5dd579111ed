"""What a release and a commit are checked by is there, and says where files do not agree."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml
from release_notes import ReleaseError, main, notes_of, version_in_files

PROJECT = Path(__file__).parents[2]
FILES = ("pyproject.toml", "amicrawl/__init__.py", "uv.lock", "CHANGELOG.md")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the files that a release is checked by."""
    (tmp_path / "amicrawl").mkdir()
    for name in FILES:
        shutil.copyfile(PROJECT / name, tmp_path / name)
    return tmp_path


def test_all_files_name_one_version(root: Path) -> None:
    version = version_in_files()
    project = root / "pyproject.toml"
    project.write_text(project.read_text().replace(f'version = "{version}"', 'version = "99.0.0"', 1))
    with pytest.raises(ReleaseError, match=r"pyproject\.toml has 99\.0\.0"):
        version_in_files(root)


def test_the_notes_of_a_release_are_the_section_of_its_version(root: Path) -> None:
    version = version_in_files()
    changelog = root / "CHANGELOG.md"
    changelog.write_text(
        f"# Changelog\n\n## [Unreleased]\n\n## [{version}] - 2031-01-02\n\nNew.\n\n## [0.0.1] - x\n"
    )
    assert notes_of(f"v{version}", root=root) == "New.\n"
    changelog.write_text("# Changelog\n\n## [Unreleased]\n")
    with pytest.raises(ReleaseError, match="has no section"):
        notes_of(f"v{version}", root=root)


def test_a_tag_of_another_version_is_refused_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["v99.0.0"]) == 1
    assert f"tag v{version_in_files()}" in capsys.readouterr().err


def test_workflows_and_hooks_start_what_is_there() -> None:
    started = []
    for path in (PROJECT / ".github" / "workflows").glob("*.yml"):
        steps = yaml.safe_load(path.read_text())["jobs"].values()
        started += [step["run"] for job in steps for step in job["steps"] if "run" in step]
    hooks = yaml.safe_load((PROJECT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    started += [hook["entry"] for hook in hooks]
    named = {word for line in started for word in re.findall(r"(?:^| )(\.(?:ci|venv)/\S+)", line)}
    assert {".ci/run", ".ci/release", ".venv/bin/ruff", ".venv/bin/mypy", ".ci/reference.py"} <= named
    assert [name for name in named if not (PROJECT / name).exists()] == []
