"""A small site that serves itself on this machine: what `make crawl` archives when it is given no seeds.

Besides plain pages it has what the web has: redirects, errors, a slow page, a page that ends too early.
"""
