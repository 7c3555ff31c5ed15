"""Every setting has its range: what could never work, or would be nonsense, is refused before anything starts."""

import math
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, ValidationError

from alerts.detectors.stall_limit import BETWEEN
from pipeline.catalog.layers import Phase
from pipeline.errors import SettingsError
from pipeline.setting_values import WEEK
from pipeline.setting_words import EXAMPLES
from pipeline.settings import Part, ReceiverSettings, Settings, load


def fields(kind: type) -> Iterator[tuple[str, Any]]:
    """Every setting's dotted name and what is known of it; of a receiver those of its one entry."""
    groups = {"": Settings, "receivers.": ReceiverSettings}
    groups |= {
        f"{name}.": i.annotation
        for name, i in Settings.model_fields.items()
        if isinstance(i.annotation, type) and issubclass(i.annotation, Part)
    }
    for group, model in groups.items():
        yield from ((group + name, info) for name, info in model.model_fields.items() if info.annotation is kind)


def given(key: str, value: object) -> dict[str, Any]:
    group, _, name = key.rpartition(".")
    if group == "receivers":
        return {"receivers": [{"kind": "webhook", "url": "http://x", name: value}]}
    return {group: {name: value}} if group else {name: value}


def refused(key: str, value: object) -> bool:
    try:
        Settings(**given(key, value))
    except ValidationError:
        return True
    return False


NUMBERS = [*fields(int), *fields(float)]
TEXTS = [*fields(str)]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [n for n in os.environ if n.startswith("SUREFOOT_")]:
        monkeypatch.delenv(name)


def test_there_are_numbers_and_texts_to_look_at() -> None:
    assert {key for key, _ in NUMBERS} >= {"store.port", "store.memory_bytes", "detect.tick", "recovery.window"}
    assert {key for key, _ in TEXTS} >= {"node", "clickhouse_url", "ingest.token", "receivers.key"}


@pytest.mark.parametrize(("key", "info"), NUMBERS, ids=[key for key, _ in NUMBERS])
def test_a_number_has_both_bounds_and_what_lies_beyond_is_refused(key: str, info: Any) -> None:
    low = [m.ge if isinstance(m, Ge) else m.gt for m in info.metadata if isinstance(m, Ge | Gt)]
    high = [m.le for m in info.metadata if isinstance(m, Le)]
    assert len(low) == len(high) == 1
    assert 0 <= low[0] < high[0] < math.inf
    assert low[0] <= info.default <= high[0]
    assert not refused(key, high[0])
    for bad in (-1, low[0] - 1, high[0] * 2, math.nan, math.inf, -math.inf, True, False, "many", None):
        assert refused(key, bad), bad


@pytest.mark.parametrize("key", [key for key, _ in TEXTS])
def test_a_text_is_one_line_without_control_characters(key: str) -> None:
    for bad in ("a\nb", "a\0b", "a\x1b[31m", "a\n", 5, True, None):
        assert refused(key, bad), bad


@pytest.mark.parametrize("key", ["clickhouse_url", "store.url", "ingest.url", "console.url", "receivers.url"])
def test_an_address_is_one_of_http(key: str) -> None:
    for bad in (
        "not a url",
        "foo",
        "foo:8123",
        "ftp://x",
        "http://",
        "http://:80",
        "http://h:0",
        "http://h:99999",
        "http://h:x",
        "http://a b",
    ):
        assert refused(key, bad), bad
    for good in ("http://h", "https://h.example:8443/", "http://127.0.0.1:1", "http://[::1]:8123"):
        assert not refused(key, good), good


def test_an_address_has_only_what_is_heeded() -> None:
    for bad in ("http://clickhouse:8123/path", "http://clickhouse:8123/?database=x"):
        assert refused("clickhouse_url", bad), bad
    for bad in ("http://u:p@h", "http://h/?a=b", "http://h/#x"):
        assert refused("ingest.url", bad) and refused("console.url", bad), bad
    assert not refused("clickhouse_url", "https://user:p%40ss@clickhouse:8443")
    assert not refused("ingest.url", "https://gateway/surefoot/ingest/")
    assert not refused("receivers.url", "https://chat.example/hook?token=x")


def test_a_refused_address_is_not_repeated_since_it_may_hold_a_password(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("clickhouse_url: http://u:s3cret@host:99999")
    with pytest.raises(SettingsError) as caught:
        load(tmp_path / "c.yaml")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("key", ["store.host", "ingest.host", "agent.host", "console.host"])
def test_a_host_is_a_name_or_an_address(key: str) -> None:
    for bad in ("", " ", "http://h", "h:80", "a b", "a..b", "x" * 64, "h/"):
        assert refused(key, bad), bad
    for good in ("localhost", "0.0.0.0", "::", "node-1.cluster_a.example"):
        assert not refused(key, good), good


@pytest.mark.parametrize("key", ["node", "cluster"])
def test_a_label_is_not_empty_and_fits_into_a_rings_header(key: str) -> None:
    for bad in ("", "  ", " a", "a ", "x" * 65, "ä" * 33):
        assert refused(key, bad), bad
    assert not refused(key, "x" * 64)


@pytest.mark.parametrize("name", ["gpu-1,gpu-2", "a b", "a/b", "../x", "..", "-x", "*", "a\tb", "a\u00a0b", "a=b", "h\u00e4"])
def test_a_node_s_name_may_stand_in_lists_in_names_of_files_and_in_addresses(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("SUREFOOT_NODE", name)
    with pytest.raises(SettingsError) as caught:
        load()
    assert "setting node" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["gpu-1", "ip-10-0-0-1.ec2.internal", "node_7", "worker.cluster.local", "fd00::1", "10.0.0.1", "X" * 63])
def test_names_of_hosts_and_of_kubernetes_nodes_are_names_of_nodes(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("SUREFOOT_NODE", name)
    assert load().node == name.lower()


def test_a_machine_whose_own_name_is_no_such_name_is_told_to_set_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUREFOOT_NODE", raising=False)
    monkeypatch.setattr(socket, "gethostname", lambda: "my pc")
    with pytest.raises(SettingsError, match=r"^setting node: must be letters, digits, .*: give it one .SUREFOOT_NODE.$"):
        load()


@pytest.mark.parametrize("key", ["state_dir", "ring_dir"])
def test_a_folder_is_a_path(key: str) -> None:
    for bad in ("", " ", "a\0b", "a\nb", "~nobody-of-that-name/x", 5, None):
        assert refused(key, bad), bad
    assert getattr(Settings(**given(key, "a/b")), key) == Path.cwd() / "a/b"


def test_a_relative_folder_is_refused_where_the_current_one_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert refused("state_dir", "a/b")
    assert not refused("state_dir", "/a/b")


def test_a_token_is_what_a_header_can_carry() -> None:
    for key in ("ingest.token", "receivers.key"):
        for bad in ("a b", "a\nb", "töken"):
            assert refused(key, bad), bad
        assert not refused(key, "aZ09-._~+/=")


def test_names_in_the_store_are_identifiers() -> None:
    assert refused("store.database", "") and refused("store.database", "a; DROP") and refused("store.cluster", "a-b")
    assert refused("store.user", "")


def test_the_phases_that_have_limits_are_those_of_the_catalogue_and_the_time_between_steps() -> None:
    for bad in ({"foo": 1}, {"init": -1}, {"init": 0}, {"init": math.inf}, {"init": WEEK + 1}, {"init": True}):
        assert refused("detect.phase_limits", bad), bad
    assert not refused("detect.phase_limits", {**dict.fromkeys(Phase, 5.0), BETWEEN: 5.0})


@pytest.mark.parametrize(
    "text",
    [
        "store: {port: 4318}",
        "ingest: {port: 8501}",
        "agent: {port: 8501, host: 0.0.0.0}",
        "console: {port: 4318, host: localhost}",
        "console: {port: 9412, host: '::'}",
    ],
)
def test_two_parts_on_one_port_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(SettingsError, match=r"^(\w+)\.port and (\w+)\.port are both \d+: give each part a port of its own$"):
        load(tmp_path / "c.yaml")


@pytest.mark.parametrize("text", ["store: {port: 4318, url: 'http://x'}", "console: {port: 4318, host: 127.0.0.2}"])
def test_one_port_on_two_addresses_or_of_a_store_that_does_not_run_here_is_fine(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    load(tmp_path / "c.yaml")


def holders(model: type[BaseModel] = Settings, before: str = "") -> Iterator[str]:
    """Every setting that holds others: a group, a list or a mapping."""
    for name, info in model.model_fields.items():
        kind, origin = info.annotation, get_origin(info.annotation)
        inner = kind if isinstance(kind, type) else get_args(kind)[0] if origin is tuple else None
        if origin in (tuple, dict) or (isinstance(kind, type) and issubclass(kind, Part)):
            yield before + name
        if isinstance(inner, type) and issubclass(inner, Part):
            yield from holders(inner, f"{before}{name}.")


def nested(key: str, value: str) -> str:
    """The settings file in which `value` stands at `key`."""
    if key == "agent.scrape.labels":
        return f"agent: {{scrape: [{{name: a, url: 'http://x', labels: {value}}}]}}"
    *groups, last = key.split(".")
    text = f"{last}: {value}"
    for group in reversed(groups):
        text = f"{group}: {{{text}}}"
    return text


@pytest.mark.parametrize("key", [*holders()])
def test_a_setting_that_holds_others_says_so_with_an_example_that_it_takes(key: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(nested(key, EXAMPLES[key]))
    load(path)
    path.write_text(nested(key, "5"))
    with pytest.raises(SettingsError) as caught:
        load(path)
    assert str(caught.value).endswith(f"as in {key.rpartition('.')[2]}: {EXAMPLES[key]}")
    assert "Input" not in str(caught.value) and "dictionary" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agent: {probe_paths: /x}", "setting agent.probe_paths: must be a list, as in probe_paths: [/scratch, /data]"),
        ("receivers: [log]", "setting receivers.0: must have keys of its own, as in receivers: [{kind: log}]"),
        ("agent: {compat: [foo]}", "setting agent.compat.0: must be 'dcgm' or 'node'"),
        ("agent: {interval: often}", "setting agent.interval: must be a number"),
        ("agent: {port: 1.5}", "setting agent.port: must be a whole number"),
        ("cluster: 5", "setting cluster: must be text: put it in quotes"),
        ("receivers: [{}]", "setting receivers.0.kind: is missing"),
        ("agent: {port: 0}", "setting agent.port: must be greater than or equal to 1"),
    ],
)
def test_what_is_wrong_with_a_value_is_said_in_words_of_the_file(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(tmp_path / "c.yaml")
    assert str(caught.value) == said
