"""One partition of a crawl: links for other partitions leave by the outbox, theirs come in as offers.

What carries the batches is not known here: a pipe between processes of one machine
(`crawl/processes`), Redis (`fleet/sharing`), or objects in a bucket (`fleet/spark`).
"""
