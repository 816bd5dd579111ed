"""`scrapy genspider`: Scrapy's own, with the templates of amicrawl beside those there are.

A template of the same name in the project's `TEMPLATES_DIR` goes before ours.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.commands import genspider

if TYPE_CHECKING:
    import argparse
    from importlib.resources.abc import Traversable

_SUFFIX = ".tmpl"


class Command(genspider.Command):
    """Writes a spider from a template."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Write the spider that *args* name, or list or show the templates there are."""
        with ExitStack() as stack:
            for option in ("template", "dump"):
                ours = self._ours(getattr(opts, option) or "")
                if ours is not None:
                    # Scrapy takes a path where it takes a name; out of an egg the file is unpacked.
                    setattr(opts, option, str(stack.enter_context(resources.as_file(ours))))
            super().run(args, opts)
        if opts.list:
            names = sorted(file.name.removesuffix(_SUFFIX) for file in _templates())
            sys.stdout.write("".join(f"  {name}\n" for name in names if self._ours(name) is not None))

    def _ours(self, name: str) -> Traversable | None:
        """Return our template *name*, if there is one and the project has none of that name."""
        if Path(f"{name}{_SUFFIX}").exists() or Path(self.templates_dir, f"{name}{_SUFFIX}").exists():
            return None
        return next((file for file in _templates() if file.name == f"{name}{_SUFFIX}"), None)

    # Private, but the sole place for it: Scrapy takes a port for a part of the domain, and such a
    # spider would find its own site to be foreign. Were the method gone, it would just not be called.
    def _generate_template_variables(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        variables = super()._generate_template_variables(*args, **kwargs)
        return {**variables, "domain": urlsplit(variables["url"]).hostname or variables["domain"]}


def _templates() -> list[Traversable]:
    directory = resources.files("amicrawl").joinpath("templates", "spiders")
    return [file for file in directory.iterdir() if file.name.endswith(_SUFFIX)]
