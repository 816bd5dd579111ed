"""Opens a page in a browser with page methods, and each page that it links to."""

import json

from scrapy import Request, Spider


class BrowsingSpider(Spider):
    name = "browsing"
    handle_httpstatus_all = True

    def __init__(self, site, meta="{}", **kwargs):
        super().__init__(**kwargs)
        self.site, self.meta = site, meta

    def request(self, url, **given):
        from scrapy_playwright.page import PageMethod

        meta = json.loads(self.meta)
        meta["playwright_page_methods"] = [
            PageMethod(each["method"], *each["args"]) for each in meta["playwright_page_methods"]
        ]
        return Request(url, meta=meta | {"handle_httpstatus_all": True}, **given)

    async def start(self):
        yield self.request(f"{self.site}/", cb_kwargs={"first": True})

    def parse(self, response, first=False):
        yield {
            "page": "/" + response.url.split("/", 3)[3],
            "said": response.text,
            "status": response.status,
            "type": response.headers.get("Content-Type", b"").decode(),
            "odd": response.headers.get("X-Odd-Case", b"").decode(),
            "redirected": len(response.meta.get("redirect_urls", ())),
            "class": type(response).__name__,
        }
        for link in response.css("a::attr(href)").getall() if first else ():
            yield self.request(response.urljoin(link))
