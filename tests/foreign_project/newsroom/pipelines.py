"""A pipeline that knows of nothing but its project's own items."""


class TitlePipeline:
    """Insists on a title, so that any item not of this project would make it fail."""

    def process_item(self, item):
        item["title"] = item["title"].upper()
        return item
