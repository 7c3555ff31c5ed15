"""ClickHouse in one process (chDB) behind ClickHouse's own HTTP protocol."""
