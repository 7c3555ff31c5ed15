"""The receiver: takes telemetry in, keeps it on disk before it is acknowledged, stores it once; answers launchers."""
