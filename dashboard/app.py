"""The console's script: Streamlit runs it for every browser session. `serve.py` says how it is started."""

from pathlib import Path

import streamlit as st

from dashboard.views import fleet, incident, node, now, run, runbook, silences

_HERE = Path(__file__).parent
st.set_page_config(page_title="Surefoot", page_icon=_HERE / "icon.svg", layout="wide", initial_sidebar_state="collapsed")
st.logo(_HERE / "logo.svg", size="medium")
st.html(_HERE / "console.css")

_now = st.Page(now.page, title="Now", url_path="now", icon=":material/radar:")


def _home() -> None:
    """The bare address leads to Now: Streamlit gives its default page no path of its own."""
    st.switch_page(_now)


silences.banner()
st.navigation(
    [
        st.Page(_home, title="Surefoot", url_path="home", default=True, visibility="hidden"),
        _now,
        st.Page(fleet.page, title="Fleet", url_path="fleet", icon=":material/grid_view:"),
        st.Page(node.page, title="Node", url_path="node", visibility="hidden"),
        st.Page(run.page, title="Run", url_path="run", icon=":material/timeline:"),
        st.Page(incident.page, title="Incident", url_path="incident", icon=":material/emergency_home:"),
        st.Page(runbook.page, title="Runbook", url_path="runbook", visibility="hidden"),
        st.Page(silences.page, title="Silences", url_path="silences", icon=":material/notifications_paused:"),
    ],
    position="top",
).run()
