"""One crawl over many machines: its partitions, who has them, and the links that travel between them.

The hosts of a shared crawl are dealt to partitions, as many as it was made with. A worker takes one
after the other, each with a lease and a fencing token, so a host is asked by one process only. Links to
hosts of another partition go into an outbox on disk first, then through Redis into the inbox of that
partition, and leave it when they are on disk there. The crawl has ended when no partition has anything
left and no batch is under way.
"""
