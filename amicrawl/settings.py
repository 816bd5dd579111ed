"""Settings of the Scrapy project: the add-on is on; everything else is where users expect it.

`docs/settings.md` lists what can be set. A team keeps its own in a copy of this file, or gives them
with `-s NAME=VALUE`.
"""

from amicrawl.interpreter import prepare_interpreter

# Scrapy, its commands and the spiders are imported next.
prepare_interpreter()

ADDONS = {"amicrawl.crawl.addon.ArchiveAddon": 300}
BOT_NAME = "amicrawl"
COMMANDS_MODULE = "amicrawl.crawl.commands"
# The screen has one line that is rewritten; every fetch has its row in the index. -L INFO shows more.
LOG_LEVEL = "WARNING"
NEWSPIDER_MODULE = "amicrawl.spiders"
SPIDER_MODULES = ["amicrawl.spiders"]
