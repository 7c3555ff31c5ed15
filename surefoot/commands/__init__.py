"""Commands that stand in files of their own; `surefoot/cli.py` adds them."""
