"""How fast the crawl is beside others on the same machine, in the same run: `make bench`.

Numbers go to `benchmarks/out/`, a table to standard output. Nothing here is a test: a figure is looked
at, not asserted. What is asserted is that every crawler brought home what it was sent for.
"""
