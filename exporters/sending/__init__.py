"""The way out of a node: records, lines and readings as OTLP over HTTP, bounded, off the caller's thread."""
