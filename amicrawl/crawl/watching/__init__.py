"""How a crawl is watched and steered from outside; nothing of it stands in the way of a page.

screen, progress     the line on the terminal, JSON lines elsewhere
logs, log_lines      the log: one line a message, nothing of the web raw in it
metrics              what Prometheus is told, and the endpoint that tells it
stops, stopping      limits that end a crawl
control, steering    files in the crawl's directory, and signals, that pause and change it
notices, webhooks    who is told when it has ended
"""
