"""What one forgets when adding a detector: each test names the step that is missing."""

import importlib
import pkgutil
from pathlib import Path

import alerts.detectors
from alerts.detectors.registry import DETECTORS
from pipeline.catalog import actions, faults

HERE = Path(__file__).parent


def test_every_detector_file_stands_in_the_registry_and_the_other_way_round() -> None:
    modules = [importlib.import_module(f"alerts.detectors.{m.name}") for m in pkgutil.iter_modules(alerts.detectors.__path__)]
    files = {module.NAME for module in modules if hasattr(module, "detect")}
    assert files == {d.name for d in DETECTORS}
    for module in modules:
        if hasattr(module, "detect"):
            assert module.__name__.endswith(f".{module.NAME}"), "a detector's file is called like it"


def test_every_detector_names_faults_of_the_catalogue_and_every_fault_has_somebody_who_names_it() -> None:
    named = {fault for d in DETECTORS for fault in d.faults}
    assert named <= set(faults.FAULTS)
    policys = {faults.RESTART_LOOP}
    waiting = {fault for fault in faults.FAULTS if fault.waits_for}
    assert named | policys | waiting == set(faults.FAULTS), "a fault that nobody can name will never be found"
    assert not (named | policys) & waiting, "what is found waits for nothing: move it to faults.py"
    assert all(d.faults for d in DETECTORS)


def test_every_detector_can_clear_what_it_opens_and_is_tested() -> None:
    texts = "".join(p.read_text(encoding="utf-8") for p in HERE.glob("test_*.py"))
    for d in DETECTORS:
        for function in ("detect", "clears"):
            assert f"{d.name}.{function}(" in texts, f"no test calls {d.name}.{function}"
        for fault in d.faults:
            assert f'"{fault.name}"' in texts, f"no test sees {fault.name}"


def test_every_fault_says_what_is_done_first_or_that_nothing_is() -> None:
    for fault in faults.FAULTS:
        assert fault.first_action is None or fault.first_action in actions.ACTIONS
