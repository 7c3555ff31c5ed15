"""Settings: a typing error is never overlooked, and the message says what to write instead."""

from pathlib import Path

import pytest

from pipeline.errors import SettingsError
from pipeline.settings import keep_loopback_direct, load, without_secrets


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [n for n in os.environ if n.startswith("SUREFOOT_")]:
        monkeypatch.delenv(name)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "surefoot.yaml"
    path.write_text(text)
    return path


def test_an_unknown_key_is_named_with_the_nearest_known_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"unknown setting ingest\.prot; did you mean port\?"):
        load(written(tmp_path, "ingest: {prot: 4318}"))


def test_an_unknown_group_is_named_with_the_nearest_known_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"unknown setting ingset; did you mean ingest\?"):
        load(written(tmp_path, "ingset: {port: 4318}"))


def test_an_unknown_variable_of_the_environment_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREFOOT_RINGDIR", "/dev/shm/x")
    with pytest.raises(SettingsError, match=r"unknown setting SUREFOOT_RINGDIR.*did you mean SUREFOOT_RING_DIR"):
        load()


def test_an_unknown_nested_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREFOOT_INGEST__PROT", "1")
    with pytest.raises(SettingsError, match=r"ingest\.prot; did you mean port"):
        load()


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREFOOT_INGEST__PORT", "5000")
    settings = load(written(tmp_path, "ingest: {port: 4000, token: abc}"))
    assert (settings.ingest.port, settings.ingest.token) == (5000, "abc")


def test_a_secret_is_read_from_the_file_that_a_variable_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    monkeypatch.setenv("SUREFOOT_INGEST__TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("SUREFOOT_INGEST__TOKEN", "")  # so that monkeypatch takes it away again
    assert load().ingest.token == "s3cret"


def test_what_may_hold_a_secret_is_not_handed_to_a_strangers_process() -> None:
    secret = ["SUREFOOT_INGEST__TOKEN", "surefoot_ingest__token", "SUREFOOT_STORE__PASSWORD", "SUREFOOT_CLICKHOUSE_URL"]
    secret += ["SUREFOOT_RECEIVERS", "SUREFOOT_AGENT__REDFISH__PASSWORD"]
    kept = {"SUREFOOT_CONFIG": "f", "SUREFOOT_NODE": "n", "SUREFOOT_MONITOR_OFF": "1", "WANDB_API_KEY": "theirs"}
    assert without_secrets({**dict.fromkeys(secret, "s"), **kept}) == kept


def test_a_missing_secret_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREFOOT_INGEST__TOKEN_FILE", "/nowhere/token")
    with pytest.raises(SettingsError, match="cannot read the file that SUREFOOT_INGEST__TOKEN_FILE names"):
        load()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ingest: [1]", "setting ingest"),
        ("- a\n- b", "must hold keys and values"),
        ("a: b: c", "not valid YAML"),
        ("detect: {stall_factor: 0.5}", "setting detect.stall_factor: must be greater than 1"),
        ("recovery: {modes: {reboot_moon: auto}}", "unknown action 'reboot_moon'; known are restart_run"),
        ("recovery: {modes: {restart_run: always}}", "setting recovery.modes.restart_run"),
        ("1: 2", "line 1: the key '1' is not text"),
        ("\nnull: 2", "line 2: the key 'null' is not text"),
        ("detect: {on: 2}", "line 1: the key 'on' is not text"),
        ("? [a]\n: 1", "line 1: a key is not text"),
        ("a: " + "[" * 3000, "nested too deep"),
        ("cluster: 2026-13-45", "not valid YAML: month must be in 1..12"),
        ("cluster: !!bool maybe", "not valid YAML"),
        ("cluster: !!int ''", "not valid YAML"),
        ("false", "must hold keys and values, not a bool"),
        ("[]", "must hold keys and values, not a list"),
        ("_env_file: /etc/passwd", "unknown setting _env_file"),
        ("receivers: [{kind: log, nmae: x}]", "unknown setting receivers.0.nmae; did you mean name?"),
        ("ingest:\n  port: 1\n  token: a\n  port: 2", "line 4: the key port stands twice, first in line 2"),
        ("node: a\nagent: {port: 1}\nnode: b", "line 3: the key node stands twice, first in line 1"),
    ],
)
def test_what_cannot_be_read_or_does_not_fit_is_explained_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(written(tmp_path, text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_key_that_a_merge_brings_may_be_given_anew(tmp_path: Path) -> None:
    text = "ingest: &one {port: 5000, token: abc}\nconsole: {<<: {port: 5001}, port: 5002}\n"
    settings = load(written(tmp_path, text))
    assert (settings.ingest.port, settings.console.port) == (5000, 5002)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("SUREFOOT_RECEIVERS", "foo", "SUREFOOT_RECEIVERS in the environment is not valid JSON: Expecting value at character 1"),
        ("SUREFOOT_INGEST", "foo", "SUREFOOT_INGEST in the environment is not valid JSON"),
        ("surefoot_ingest", "foo", "surefoot_ingest in the environment is not valid JSON"),
        ("SUREFOOT_INGEST", "[1]", "setting ingest: "),
        ("SUREFOOT_DETECT__PHASE_LIMITS", "{bad", "SUREFOOT_DETECT__PHASE_LIMITS in the environment is not valid JSON"),
        ("SUREFOOT_DETECT__PHASE_LIMITS", '{"init": NaN}', "setting detect.phase_limits.init: must be a finite number"),
        ("SUREFOOT_RECEIVERS", "[" * 5000, "SUREFOOT_RECEIVERS in the environment is not JSON that can be read"),
        ("SUREFOOT_NODE__NAME", "x", "unknown setting SUREFOOT_NODE__NAME in the environment"),
        ("SUREFOOT_RECEIVERS__0__KIND", "log", "unknown setting SUREFOOT_RECEIVERS__0__KIND in the environment"),
    ],
)
def test_a_variable_that_does_not_fit_is_explained_in_one_line(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"\x7fELF\xff\xfe", b"a\0b"])
def test_a_secret_file_that_holds_no_text_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    monkeypatch.setenv("SUREFOOT_INGEST__TOKEN_FILE", str(tmp_path / "token"))
    with pytest.raises(SettingsError, match="the file that SUREFOOT_INGEST__TOKEN_FILE names does not hold text"):
        load()


def test_only_what_is_close_to_an_unknown_variable_is_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREFOOT_FOO", "1")
    with pytest.raises(SettingsError) as caught:
        load()
    assert "did you mean" not in str(caught.value)
    assert "known are SUREFOOT_CLUSTER, SUREFOOT_NODE, " in str(caught.value)


def test_a_missing_settings_file_is_named() -> None:
    with pytest.raises(SettingsError, match=r"cannot read the settings file /nowhere/surefoot\.yaml: No such file"):
        load(Path("/nowhere/surefoot.yaml"))


def test_a_node_name_is_folded_to_lower_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREFOOT_NODE", "Node01-GPU8")
    assert load().node == "node01-gpu8"


def test_a_proxy_never_stands_between_surefoots_own_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from requests.utils import should_bypass_proxies

    monkeypatch.setenv("NO_PROXY", "corp.example")
    monkeypatch.setenv("no_proxy", "")
    keep_loopback_direct()
    assert should_bypass_proxies("http://127.0.0.1:4318/healthz", no_proxy=None)
    assert not should_bypass_proxies("http://example.org/", no_proxy=None)


def test_the_page_of_settings_is_that_of_the_code() -> None:
    from surefoot.settings_page import page

    assert (Path(__file__).parents[2] / "docs/settings.md").read_text() == page(), (
        "run: python -m surefoot.settings_page > docs/settings.md"
    )


@pytest.mark.parametrize("part", ["job", "recovery"])
def test_the_page_says_what_each_setting_of_waits_and_restarts_is_for(part: str) -> None:
    section = (Path(__file__).parents[2] / "docs/settings.md").read_text().partition(f"## {part}\n")[2].partition("| key |")[0]
    told = type(getattr(load(), part)).model_fields
    assert [name for name in told if f"`{name}`" not in section] == []
    assert "`job.gather_timeout`" in section or "`recovery.gather`" in section, "the two are told apart"


def test_bare_off_in_yaml_means_off(tmp_path: Path) -> None:
    assert load(written(tmp_path, "recovery: {modes: {restart_run: off}}")).recovery.modes["restart_run"] == "off"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("receivers: [{kind: pagerduty}]", "needs its routing key"),
        ("receivers: [{kind: webhook}]", "needs an address"),
        ("console: {port: 99999}", "setting console.port"),
    ],
)
def test_what_could_never_work_is_refused_at_start(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load(written(tmp_path, text))


def test_a_file_named_for_something_that_is_no_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREFOOT_CONFIG_FILE", "/etc/surefoot.yaml")
    with pytest.raises(SettingsError, match="unknown setting SUREFOOT_CONFIG_FILE"):
        load()
