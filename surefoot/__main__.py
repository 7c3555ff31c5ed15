"""`python -m surefoot` is the console script."""

from surefoot.entry import main

main()
