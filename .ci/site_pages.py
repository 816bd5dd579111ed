"""Pages of the documentation site that are made of other files: a hook of MkDocs.

README and changelog become pages, the files in `examples` one page, and the command reference is made of
the commands themselves, so that it cannot say anything else than `--help` does. Links out of `docs` are
led to these pages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

from amicrawl.cli.commands import COMMANDS, loaded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = {
    ".py": "python",
    ".toml": "toml",
    ".yaml": "yaml",
    ".service": "ini",
    ".timer": "ini",
    ".cfg": "ini",
}
LEFT_OUT = {"demo_site"}
"""Folders of examples that are material of the demonstration and not an example."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of other files."""
    pages = {
        "index.md": _beside_docs("README.md"),
        "changes.md": _beside_docs("CHANGELOG.md"),
        "commands.md": "".join(_commands()),
        "examples.md": "".join(_examples()),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Lead links out of `docs` to the pages that were made of their targets."""
    markdown = markdown.replace("](../README.md", "](index.md").replace(
        "](../CHANGELOG.md", "](changes.md"
    )
    return re.sub(
        r"\]\(\.\./(examples/[^)#]+|scrapy\.cfg)\)",
        lambda m: f"](examples.md#{_anchor(m[1])})",
        markdown,
    )


def _beside_docs(name: str) -> str:
    """Return the page of a file that is beside `docs`, with its links led to the pages of the site."""
    text = (ROOT / name).read_text().replace("](CHANGELOG.md", "](changes.md").replace("](docs/", "](")
    return re.sub(r"\]\((examples/[^)#]+)\)", lambda m: f"](examples.md#{_anchor(m[1])})", text)


def _anchor(path: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", path.rstrip("/").lower()).strip("-")


def _examples() -> Iterator[str]:
    yield "# Examples\n\nThe files below `examples` in the repository.\n"
    for folder in sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir()):
        if folder.name in LEFT_OUT:
            continue
        files = [path for path in sorted(folder.rglob("*")) if _is_example(path)]
        if files:
            yield f"\n## {folder.name} {{ #{_anchor(f'examples/{folder.name}')} }}\n"
            for path in files:
                yield _shown(path)
    yield _shown(ROOT / "scrapy.cfg")


def _is_example(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")


def _shown(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    language = LANGUAGES.get(path.suffix, "text")
    return f"\n### {name} {{ #{_anchor(name)} }}\n\n````{language}\n{path.read_text().rstrip()}\n````\n"


def _commands() -> Iterator[str]:
    yield "# Commands\n\nWhat `amicrawl COMMAND --help` says. See also [exit codes](exit-codes.md).\n"
    for name, place in COMMANDS.items():
        if place.is_listed:
            yield from _command(f"amicrawl {name}", loaded(name), level=2)


def _command(name: str, command: Any, *, level: int) -> Iterator[str]:
    """Yield the section of *command* and those of its own commands."""
    yield f"\n{'#' * min(level, 6)} {name}\n\n{_paragraphs(command.help or '')}\n"
    rows = [row for row in (_row(each) for each in command.params) if row]
    if rows:
        yield "\n| Option or argument | Meaning | Default |\n|---|---|---|\n" + "".join(rows)
    for below, each in sorted(getattr(command, "commands", {}).items()):
        if not each.hidden:
            yield from _command(f"{name} {below}", each, level=level + 1)


def _paragraphs(text: str) -> str:
    """Return the help *text* with the marks that keep lines apart taken out."""
    return re.sub(r"([<*_])", r"\\\1", text.replace("\b\n", "").replace("\f", ""))


def _row(parameter: Any) -> str:
    """Return the line of the table for an option or an argument; empty for one that is not shown."""
    if parameter.hidden or parameter.name == "help":
        return ""
    shown = parameter.metavar or parameter.display_name_raw
    if parameter.param_type_name == "argument":
        names = f"`{shown}`"
    else:
        names = ", ".join(f"`{each}`" for each in [*parameter.opts, *parameter.secondary_opts])
        names += f" `{parameter.metavar}`" if parameter.metavar else ""
    default = parameter.default
    if default in (None, False, (), "", []) or callable(default):
        default = ""
    cells = [names, _paragraphs(parameter.help or ""), f"`{default}`" if default != "" else ""]
    return "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in cells) + " |\n"
