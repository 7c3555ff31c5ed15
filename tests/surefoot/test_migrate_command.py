"""`surefoot migrate`, as a deployment runs it first."""

import subprocess
import sys

from pipeline.settings import Settings
from pipeline.store import Store


def test_the_tables_are_made_on_a_server_that_has_no_database_of_ours_yet(
    store_settings: Settings, store_environment: dict[str, str], store: Store
) -> None:
    store.command(f"DROP DATABASE {store_settings.store.database}")
    command = [sys.executable, "-P", "-m", "surefoot", "migrate"]
    said = [subprocess.run(command, env=store_environment, capture_output=True, text=True, timeout=60) for _ in range(2)]
    assert [(one.returncode, one.stderr) for one in said] == [(0, ""), (0, "")]
    assert said[0].stdout.startswith("0001_tables.sql\n")
    assert said[1].stdout == "up to date\n"
