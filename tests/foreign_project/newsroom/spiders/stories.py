"""A spider with callbacks, arguments for them, a form and an errback: nothing of it is ours."""

import scrapy


class StoriesSpider(scrapy.Spider):
    name = "stories"

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [f"{site}/front"]
        self.site = site

    def parse(self, response):
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href, self.parse_story, cb_kwargs={"section": "news"})
        yield scrapy.FormRequest(f"{self.site}/search", formdata={"q": "tide"}, callback=self.parse_search)
        yield scrapy.Request(f"{self.site}/gone", callback=self.parse_story, errback=self.missed, cb_kwargs={"section": "x"})

    def parse_story(self, response, section):
        yield {"title": response.css("title::text").get(), "section": section, "moved": response.meta.get("redirect_times", 0)}

    def parse_search(self, response):
        yield {"title": response.text, "section": "search", "moved": 0}

    def missed(self, failure):
        yield {"title": "missed", "section": str(failure.value.response.status), "moved": 0}
