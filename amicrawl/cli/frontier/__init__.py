"""`amicrawl frontier`: look into frontier files and directories, and make files of files.

Commands that look change nothing, so a running or killed crawl may be looked at. Those that write leave
their input alone; a file appears under its name once all of it is on disk.
"""

from __future__ import annotations

import typer

from amicrawl.cli.frontier.comparison import diff, show_map
from amicrawl.cli.frontier.damage import rebuild, retry, verify
from amicrawl.cli.frontier.files import compact, export, import_dump, pack
from amicrawl.cli.frontier.listing import inspect, ls, schedule, stats
from amicrawl.cli.frontier.lookup import explain, show

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Inspect, verify and convert frontier files and directories.",
)
app.command()(inspect)
app.command()(stats)
app.command()(schedule)
app.command()(ls)
app.command()(show)
app.command()(explain)
app.command()(retry)
app.command()(verify)
app.command()(rebuild)
app.command()(pack)
app.command()(compact)
app.command()(export)
app.command("import")(import_dump)
app.command()(diff)
app.command("map")(show_map)
