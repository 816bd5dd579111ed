"""Settings of the Scrapy project: the add-on is on; everything else is where users expect it.

`docs/settings.md` lists what can be set. A team keeps its own in a copy of this file, or gives them
with `-s NAME=VALUE`.
"""

import gc
import os

# Scrapy, its commands and the spiders are imported next: half a million objects that stay. Python's
# collector would look through them again and again.
gc.set_threshold(200_000, 20, 20)
# numpy starts threads for linear algebra, which is not done here; they wait in a loop at first.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# pydantic would look through all installed packages for plugins.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

ADDONS = {"amicrawl.crawl.addon.ArchiveAddon": 300}
BOT_NAME = "amicrawl"
COMMANDS_MODULE = "amicrawl.crawl.commands"
# The screen has one line that is rewritten; every fetch has its row in the index. -L INFO shows more.
LOG_LEVEL = "WARNING"
NEWSPIDER_MODULE = "amicrawl.spiders"
SPIDER_MODULES = ["amicrawl.spiders"]
