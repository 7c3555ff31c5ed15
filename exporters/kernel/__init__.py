"""What the kernel says in its log, told as events."""
