"""How a crawl is watched and steered from outside, without slowing a page.

screen, progress     the lines on a terminal, JSON lines elsewhere
logs                 the log: one line a message, nothing of the web raw in it
metrics              what Prometheus scrapes, and the endpoint that serves it
stopping             limits that end a crawl
control              files in the crawl's directory, and signals, that pause and change it
webhooks             the notice that is sent when it has ended
"""
