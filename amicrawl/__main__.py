"""`python -m amicrawl` is the command `amicrawl`."""

from amicrawl.cli import main

main()
