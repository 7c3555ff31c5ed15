"""`python -m surefoot` is the console script."""

from surefoot.cli import main

main()
