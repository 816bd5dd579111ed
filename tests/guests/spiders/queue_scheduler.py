"""A scheduler of another project: a plain queue, as those have that keep theirs in a database."""

from collections import deque

from scrapy.core.scheduler import BaseScheduler


class QueueScheduler(BaseScheduler):
    def __init__(self):
        self.queue = deque()

    @classmethod
    def from_crawler(cls, crawler):
        return cls()

    def has_pending_requests(self):
        return bool(self.queue)

    def enqueue_request(self, request):
        self.queue.append(request)
        return True

    def next_request(self):
        return self.queue.popleft() if self.queue else None
