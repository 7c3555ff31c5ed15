"""How the console is started: everything about Streamlit's own settings stands here, none in files or in the environment."""

import sys
from pathlib import Path

from pipeline.settings import Settings

_OPTIONS: dict[str, str] = {
    "server.headless": "true",
    "server.fileWatcherType": "none",
    "server.runOnSave": "false",
    "server.enableAgentApi": "false",  # it would let a program press recovery buttons
    "server.enableXsrfProtection": "true",
    "server.maxUploadSize": "1",
    "server.showEmailPrompt": "false",
    "browser.gatherUsageStats": "false",
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "runner.magicEnabled": "false",
    "theme.baseRadius": "9px",
    "theme.light.backgroundColor": "#f8f8f6",
    "theme.light.secondaryBackgroundColor": "#ffffff",
    "theme.light.textColor": "#1d2430",
    "theme.light.primaryColor": "#235f96",
    "theme.light.borderColor": "#e4e6e3",
    "theme.dark.backgroundColor": "#12171d",
    "theme.dark.secondaryBackgroundColor": "#1a2028",
    "theme.dark.textColor": "#e7eaee",
    "theme.dark.primaryColor": "#7db8ea",
    "theme.dark.borderColor": "#2b333e",
}


def command(settings: Settings) -> list[str]:
    """The command that serves the console on `settings.console`. Its process reads the same settings as this one, from the environment."""
    app = Path(__file__).with_name("app.py").resolve()
    options = {"server.address": settings.console.host, "server.port": str(settings.console.port), **_OPTIONS}
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    return [sys.executable, "-P", "-m", "streamlit", "run", str(app), *flags]
