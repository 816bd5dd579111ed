"""The crawl's side of sharing: links that leave through the outbox, and come in from the inbox."""
