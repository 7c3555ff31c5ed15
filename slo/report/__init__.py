"""The report of a period: its facts first, its page from them."""
