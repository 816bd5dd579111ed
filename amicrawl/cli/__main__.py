"""`python -m amicrawl.cli` is the command `amicrawl`."""

from amicrawl.cli import main

main()
