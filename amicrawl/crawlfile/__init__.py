"""Crawl files: crawls as a team keeps them, in TOML, checked before anything is fetched.

    file = read_crawl_file(Path("crawls/gov.toml"))
    file.spider, file.arguments, file.settings, file.schedule

* `keys.py`: every key, its table and the kind of its value, and the JSON Schema made of them.
* `reading.py`: TOML with the lines of its keys (`lines.py`), and the files that a file extends.
* `checks.py`: what is wrong with values; `faults.py` says it.
* `secrets.py`: what a file points at and never holds, cookies among it.
* `schedule.py`: when a crawl is due again, and in which directory.

To read on, begin with `crawl_file.py`. How a crawl takes all this is the business of `crawl`.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.crawlfile.crawl_file import CrawlFile, Examined, effective, examine, read_crawl_file
    from amicrawl.crawlfile.faults import CrawlFileError, Fault
    from amicrawl.crawlfile.keys import shipped_schema
    from amicrawl.crawlfile.lines import parsed_toml
    from amicrawl.crawlfile.reading import read_sheet
    from amicrawl.crawlfile.schedule import Action, Plan, last_crawls, plan
    from amicrawl.crawlfile.secrets import Cookie, cookie_field, is_reference, read_cookies, resolve
else:
    __getattr__, __all__ = lazy_exports(__spec__)
