"""An API that is paged by POST, log-ins by form, a callback without a name and an errback after retries."""

from scrapy import FormRequest, Spider
from scrapy.http import JsonRequest


class FormsSpider(Spider):
    name = "forms"

    def __init__(self, site, kind, **kwargs):
        super().__init__(**kwargs)
        self.site, self.kind = site, kind

    async def start(self):
        if self.kind == "post":
            yield JsonRequest(f"{self.site}/api", data={"page": 1}, cb_kwargs={"page": 1})
        elif self.kind == "form":
            yield FormRequest(f"{self.site}/login", formdata={"user": "u"}, callback=self.logged_in)
        elif self.kind == "lambda":
            for n in range(10):
                yield FormRequest(f"{self.site}/page/{n}", method="GET", callback=lambda r: {"path": r.url[-2:]})
        elif self.kind == "errback":
            yield FormRequest(f"{self.site}/silent", method="GET", callback=self.parse, errback=self.missed)

        elif self.kind == "unheard":
            yield FormRequest(f"{self.site}/silent", method="GET")

    def parse(self, response, page=0):
        yield {"page": page, "said": response.text}
        if page < 10:
            yield JsonRequest(f"{self.site}/api", data={"page": page + 1}, cb_kwargs={"page": page + 1}, dont_filter=True)

    def logged_in(self, response):
        for n in range(5):
            yield FormRequest(f"{self.site}/form/{n}", formdata={"n": str(n)}, callback=self.read)

    def read(self, response):
        yield {"said": response.text, "path": response.url[-1]}

    def missed(self, failure):
        yield {"missed": type(failure.value).__name__, "times": failure.request.meta.get("retry_times")}
