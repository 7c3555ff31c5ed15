"""OTLP requests to rows. Pure."""
