"""The GPU collector against a library that answers as NVIDIA's, in a process of its own: what others' monitors got wrong.

What the kernel's log tells of GPUs (C01, C11, C13 to C15) stands in test_kernel.py, what is made of both in alerts/test_lessons_gpu.py."""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GIB = 1 << 30
MIB = 1 << 20

Answer = dict[str, Any]


def uuid(number: int) -> str:
    return f"GPU-00000000-0000-0000-0000-{number:012d}"


def scenario(count: int = 4, order: str = "", **changes: str) -> str:
    """`count` GPUs in good health; `changes` are lines, "2__nvmlDeviceGetPowerUsage" for "2.nvmlDeviceGetPowerUsage"; "" removes one."""
    lines = {"order": order or " ".join(map(str, range(count))), "-1.nvmlSystemGetDriverVersion": "575.57.08"}
    for number in range(count):
        lines[f"{number}.nvmlDeviceGetUUID"] = uuid(number)
        lines[f"{number}.nvmlDeviceGetPciInfo_v3"] = f"00000000:{0x10 + number:02X}:00.0"
        lines[f"{number}.nvmlDeviceGetPowerUsage"] = str(100_000 + 1000 * number)
    lines["*.nvmlDeviceGetName"] = "NVIDIA H100 80GB HBM3"
    lines["*.nvmlDeviceGetUtilizationRates"] = "40 20"
    lines["*.nvmlDeviceGetMemoryInfo_v2"] = f"{80 * GIB} {GIB} {39 * GIB} {40 * GIB}"
    lines["*.nvmlDeviceGetTotalEccErrors.0.0"] = "0"
    lines |= {key.replace("__", "."): value for key, value in changes.items()}
    return "".join(f"{key} {value}\n" for key, value in lines.items() if value)


class Passes:
    """The collector's process."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.proc, self.sys = folder / "proc", folder / "sys"
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "LD_LIBRARY_PATH": str(library), "FAKE_NVML": str(folder / "scenario")}
        environ |= {"FAKE_PROC": str(self.proc), "FAKE_SYS": str(self.sys)}
        (self.proc / "sys/kernel/random").mkdir(parents=True)
        (self.proc / "sys/kernel/random/boot_id").write_text("boot-1\n")
        command = [sys.executable, str(ROOT / "tests/fakes/nvml/passes.py")]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ)

    def __call__(self, text: str | None = None, **order: Any) -> Answer:
        """One pass, with another scenario where one is given."""
        assert self.child.stdin and self.child.stdout
        self.child.stdin.write(json.dumps(order | ({} if text is None else {"scenario": text})) + "\n")
        self.child.stdin.flush()
        ready, _, _ = select.select([self.child.stdout], [], [], 60.0)
        line = self.child.stdout.readline() if ready else ""
        assert line, "the collector's process ended, or hangs"
        return dict(json.loads(line))


@pytest.fixture
def passes(fake_nvml: Path, tmp_path: Path) -> Iterator[Passes]:
    made = Passes(fake_nvml, tmp_path)
    yield made
    assert made.child.stdin and made.child.stdout
    made.child.stdin.close()
    try:
        assert made.child.wait(20) == 0, "what hangs must not keep the agent from ending"
    finally:
        made.child.kill()
        made.child.wait()
        made.child.stdout.close()


def on_the_bus(passes: Passes, address: str = "0000:1b:00.0") -> None:
    """One of NVIDIA's GPUs, as the kernel finds it on the bus whether or not a driver is loaded."""
    device = passes.sys / "bus/pci/devices" / address
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10de\n")
    (device / "class").write_text("0x030200\n")


def of(answer: Answer, family: str = "gpu") -> dict[str, dict[str, Any]]:
    """The values of a family's readings by UUID (of links, the last one's)."""
    return {r["labels"]["uuid"]: r["values"] for r in answer["readings"] if r["family"] == family}


def values(answer: Answer, name: str) -> dict[str, Any]:
    """What each GPU says of a metric, where it says something."""
    return {key: told[name] for key, told in of(answer).items() if name in told}


# --- C02 -----------------------------------------------------------------------------------------


def test_a_utilisation_far_above_all_is_left_out_and_counted_and_the_next_one_is_there_again(passes: Passes) -> None:
    seen = [passes(scenario(1, **{"0__nvmlDeviceGetUtilizationRates": f"{share} 20"})) for share in (40, 5120, 42)]
    assert [values(a, "gpu.utilization").get(uuid(0)) for a in seen] == [0.40, None, 0.42]
    assert [a["rejected"] for a in seen] == [0, 1, 0]


@pytest.mark.parametrize(
    ("key", "value", "metric"),
    [
        ("0__nvmlDeviceGetPowerUsage", "4294967295", "gpu.power"),
        ("0__nvmlDeviceGetTotalEccErrors.0.0", "18446744073709551615", "gpu.ecc.volatile.corrected"),
        ("0__nvmlDeviceGetMemoryInfo_v2", "9223372036854775794 0 0 9223372036854775794", "gpu.memory.used"),
        ("0__nvmlDeviceGetFanSpeed", "2147483632", "gpu.fan"),
        ("0__field.82", "2147483632", "gpu.memory.temperature"),
    ],
)
def test_a_drivers_word_for_not_known_is_absent_and_nothing_else_is(passes: Passes, key: str, value: str, metric: str) -> None:
    told = of(passes(scenario(1, **{key: value})))[uuid(0)]
    assert metric not in told
    assert told["gpu.up"] == 1 and told["gpu.utilization"] == 0.40


# --- C03 -----------------------------------------------------------------------------------------


def test_what_is_not_supported_is_absent_and_the_rest_is_told(passes: Passes) -> None:
    parts = {"0__nvmlDeviceGetMigMode": "1", "0__nvmlDeviceGetUtilizationRates": "!3", "0__mig": "100", "100__nvmlDeviceGetUUID": "MIG-1"}
    parts["100__nvmlDeviceGetMemoryInfo_v2"] = f"{40 * GIB} 0 {30 * GIB} {10 * GIB}"
    answer = passes(scenario(1, **parts))
    told = of(answer)[uuid(0)]
    assert "gpu.utilization" not in told, "nobody may take it for idle"
    assert told["gpu.mig.enabled"] == 1 and told["gpu.memory.used"] == 40 * GIB
    assert of(answer, "gpu_partition")[uuid(0)] == {
        "gpu_partition.memory.total": 40 * GIB,
        "gpu_partition.memory.reserved": 0,
        "gpu_partition.memory.used": 10 * GIB,
    }
    assert answer["rejected"] == 0 and answer["error"] == ""


@pytest.mark.parametrize("code", [3, 4, 13, 999])
def test_a_driver_that_knows_nothing_but_its_gpus_still_shows_them(passes: Passes, code: int) -> None:
    answer = passes(f"order 0\n0.nvmlDeviceGetUUID {uuid(0)}\n*.nvmlDeviceGetPowerUsage !{code}\n")
    assert values(answer, "gpu.up") == {uuid(0): 1} and values(answer, "gpu.power") == {}
    assert answer["error"] == ""


# --- C04 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["2__nvmlDeviceGetHandleByIndex_v2", "2__nvmlDeviceGetUUID", "2__nvmlDeviceGetPowerUsage"])
def test_a_lost_gpu_is_down_under_its_uuid_and_told_of_once_wherever_the_driver_notices_it(passes: Passes, lost: str) -> None:
    passes(scenario())
    answers = [passes(scenario(**{lost: "!15"})) for _ in range(3)]
    for answer in answers:
        assert values(answer, "gpu.up") == {uuid(0): 1, uuid(1): 1, uuid(2): 0, uuid(3): 1}
        assert values(answer, "gpu.power") == {uuid(0): 100.0, uuid(1): 101.0, uuid(3): 103.0}
    (event,) = [event for answer in answers for event in answer["events"]]
    assert (event["kind"], event["device"]) == ("gpu_lost", uuid(2))
    assert event["attrs"] == {"uuid": uuid(2), "pci": "0000:12:00.0", "model": "NVIDIA H100 80GB HBM3"}


def test_indices_that_shift_move_no_value_to_another_gpu(passes: Passes) -> None:
    before = passes(scenario())
    after = passes(scenario(order="0 1 3"))
    assert values(before, "gpu.power") == {uuid(n): 100.0 + n for n in range(4)}
    assert values(after, "gpu.power") == {uuid(0): 100.0, uuid(1): 101.0, uuid(3): 103.0}
    assert values(after, "gpu.up")[uuid(2)] == 0
    index = {r["labels"]["uuid"]: r["labels"]["index"] for r in after["readings"] if r["family"] == "gpu"}
    assert index[uuid(3)] == "2", "the index is the driver's, and says who nobody is"


def test_a_gpu_lost_while_no_agent_ran_is_told_of_by_the_next_one_and_by_no_third(passes: Passes) -> None:
    kept = passes(scenario())["kept"]
    second = passes(scenario(order="0 1 3"), kept=kept)
    assert values(second, "gpu.up")[uuid(2)] == 0
    assert [event["device"] for event in second["events"]] == [uuid(2)]
    again = passes(kept=kept)
    assert [event["id"] for event in again["events"]] == [second["events"][0]["id"]], "what was not delivered is the same event"
    assert passes(kept=second["kept"])["events"] == []


# C01, C18
def test_a_gpu_that_comes_back_and_is_lost_again_is_another_event(passes: Passes) -> None:
    passes(scenario())
    first = passes(scenario(order="0 1 3"))["events"]
    back = passes(scenario())
    second = passes(scenario(order="0 1 3"))["events"]
    assert values(back, "gpu.up")[uuid(2)] == 1 and back["events"] == []
    assert len(first) == len(second) == 1 and first[0]["id"] != second[0]["id"]


def test_a_gpu_that_was_lost_before_any_agent_ran_is_known_by_what_the_kernel_module_says_of_it(passes: Passes) -> None:
    for number, name in ((2, uuid(2)), (3, "GPU-????????-????-????-????-????????????")):
        folder = passes.proc / f"driver/nvidia/gpus/0000:1{number}:00.0"
        folder.mkdir(parents=True)
        text = f"Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 255\nGPU UUID: \t {name}\nBus Location: \t 0000:1{number}:00.0\n"
        (folder / "information").write_text(text)
    answer = passes(scenario(order="0 1"))
    assert values(answer, "gpu.up") == {uuid(0): 1, uuid(1): 1, uuid(2): 0}
    assert [event["attrs"]["pci"] for event in answer["events"]] == ["0000:12:00.0"]


def test_another_gpu_in_the_place_of_one_has_replaced_it(passes: Passes) -> None:
    passes(scenario())
    answer = passes(scenario(**{"2__nvmlDeviceGetUUID": uuid(9)}), ahead=61.0)
    assert values(answer, "gpu.up") == {uuid(n): 1 for n in (0, 1, 3, 9)} and answer["events"] == []
    assert set(values(passes(kept=answer["kept"]), "gpu.up")) == {uuid(n) for n in (0, 1, 3, 9)}


def test_a_lost_gpu_that_was_reset_is_found_again_though_the_library_would_not_say_so_by_itself(passes: Passes) -> None:
    passes(scenario())
    passes(scenario(**{"2__nvmlDeviceGetUUID": "!15"}))
    assert values(passes(scenario(), ahead=61.0), "gpu.up")[uuid(2)] == 1


@pytest.mark.parametrize("driver", ["starts", "does not start"])
def test_the_last_gpu_is_missed_too_whether_or_not_its_driver_starts_without_any(passes: Passes, driver: str) -> None:
    on_the_bus(passes, "0000:10:00.0")
    passes(scenario(1))
    shutil.rmtree(passes.sys / "bus/pci/devices/0000:10:00.0")
    gone = {} if driver == "starts" else {"-1__nvmlInit": "!9", "-1__nvmlDeviceGetCount_v2": "!9"}
    answers = [passes(scenario(1, **gone).replace("order 0\n", "")) for _ in range(3)]
    assert [values(answer, "gpu.up") for answer in answers] == [{uuid(0): 0}] * 3
    assert [event["device"] for answer in answers for event in answer["events"]] == [uuid(0)], "once"
    on_the_bus(passes, "0000:10:00.0")
    assert values(passes(scenario(1), ahead=61.0), "gpu.up") == {uuid(0): 1}


# --- C05 -----------------------------------------------------------------------------------------


def test_a_call_that_never_returns_costs_one_gpu_and_one_thread_however_long_it_lasts(passes: Passes) -> None:
    passes(scenario(8))
    hanging = scenario(8, **{"3__nvmlDeviceGetPowerUsage": "hang"})
    for answer in [passes(hanging, timeout=3.0, kept={}), passes(), passes(), passes(ahead=5.0)]:
        others = {uuid(n) for n in range(8) if n != 3}
        assert set(values(answer, "gpu.power")) == others, "the other seven are fresh"
        assert values(answer, "gpu.probe_hung") == {uuid(n): int(n == 3) for n in range(8)}
        assert set(values(answer, "gpu.up")) == others, "nobody knows whether it is up"
        assert answer["threads"] == [f"nvidia-{uuid(3)}"]
    assert values(answer, "gpu.probe.time")[uuid(3)] > 5.0, "and it says for how long"


def test_a_call_that_hangs_where_the_gpus_are_listed_costs_one_gpu_too(passes: Passes) -> None:
    passes(scenario(8), timeout=3.0, kept={})
    for answer in (passes(scenario(8, **{"3__nvmlDeviceGetHandleByIndex_v2": "hang"})), passes(), passes()):
        assert values(answer, "gpu.probe_hung") == {uuid(n): int(n == 3) for n in range(8)}
        assert len(values(answer, "gpu.power")) == 7
        assert answer["threads"] == ["nvidia-roll"], "one stuck thread, not one a look"


def test_a_driver_with_one_lock_for_all_holds_up_every_gpu_and_not_the_agent(passes: Passes) -> None:
    passes(scenario(3), timeout=3.0, kept={})
    for answer in (passes(scenario(3, lock="1", **{"1__nvmlDeviceGetPowerUsage": "hang"})), passes(), passes()):
        assert answer["error"] == "" and len(answer["threads"]) <= 4
        assert values(answer, "gpu.probe_hung")[uuid(1)] == 1
        assert set(values(answer, "gpu.up")) <= {uuid(0), uuid(2)}, "what was not read is not told of as well"


def test_a_gpu_that_answers_again_after_a_hang_is_read_again_and_what_hung_is_thrown_away(passes: Passes, tmp_path: Path) -> None:
    passes(scenario(2), timeout=3.0, kept={})
    hung = passes(scenario(2, **{"1__nvmlDeviceGetPowerUsage": f"until {tmp_path / 'free'}", "1__nvmlDeviceGetFanSpeed": "99"}))
    assert values(hung, "gpu.probe_hung")[uuid(1)] == 1
    (tmp_path / "free").touch()
    for _ in range(1000):
        back = passes(scenario(2, **{"1__nvmlDeviceGetFanSpeed": "30"}))
        if values(back, "gpu.fan"):  # what returns at the very moment is not believed yet
            break
        time.sleep(0.02)
    assert values(back, "gpu.fan") == {uuid(1): 0.30} and values(back, "gpu.power")[uuid(1)] == 101.0
    assert back["events"] == [] and back["threads"] == []


def test_a_driver_that_hangs_at_its_start_is_an_error_and_then_a_hang_of_every_gpu_that_is_known(passes: Passes) -> None:
    kept = passes(scenario(2))["kept"]
    on_the_bus(passes)
    first = passes(scenario(2, **{"-1__nvmlInit": "hang"}), timeout=3.0, kept={})
    assert first["error"] == "the GPU driver does not answer" and first["readings"] == []
    assert passes(timeout=3.0, kept=kept)["readings"] == [], "starting takes a driver its time"
    assert values(passes(ahead=15.0), "gpu.probe_hung") == {uuid(0): 1, uuid(1): 1}


# --- C06 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [1, 9, 18])
def test_a_driver_that_is_gone_gives_an_error_and_no_old_value(passes: Passes, code: int) -> None:
    passes(scenario())
    gone = passes(scenario(**{"-1__nvmlInit": f"!{code}", "-1__nvmlDeviceGetCount_v2": f"!{code}"}))
    assert gone["readings"] == [] and gone["events"] == [] and gone["error"].startswith("NVML: ")
    assert len(values(passes(scenario()), "gpu.power")) == 4, "and is read again when it is back"


def test_a_machine_with_the_library_and_no_gpu_says_nothing_and_one_with_a_gpu_says_that_its_driver_is_not_loaded(passes: Passes) -> None:
    bare = passes("-1.nvmlInit !9\n")
    assert (bare["readings"], bare["error"]) == ([], "")
    on_the_bus(passes)
    assert passes()["error"] == "NVML: Driver Not Loaded"


# --- C07, C08 ------------------------------------------------------------------------------------


def test_processes_that_cannot_be_are_left_out_and_flagged(passes: Passes) -> None:
    answer = passes(scenario(1, **{"0__processes": f"1184:{10 * GIB} 0:{5 * GIB} 4294967295:{GIB}"}))
    (process,) = [r for r in answer["readings"] if r["family"] == "gpu_process"]
    assert process["labels"]["pid"] == "1184" and process["values"] == {"gpu_process.memory": 10 * GIB}
    assert values(answer, "gpu.binding_mismatch") == {uuid(0): 1} and values(answer, "gpu.processes") == {uuid(0): 1}


def test_a_process_that_uses_more_than_there_is_has_its_parts_swapped(passes: Passes) -> None:
    answer = passes(scenario(1, **{"0__processes": f"1184:{10 * GIB} 1024:{90 * GIB}"}))
    assert [r["labels"]["pid"] for r in answer["readings"] if r["family"] == "gpu_process"] == ["1184"]
    assert values(answer, "gpu.binding_mismatch") == {uuid(0): 1}


def test_a_rank_is_told_with_its_process(passes: Passes) -> None:
    (passes.proc / "4712").mkdir()
    (passes.proc / "4712/comm").write_text("pt_main_thread\n")
    answer = passes(scenario(1, **{"0__processes": f"4712:{GIB} 99:{GIB}"}))
    told = {r["labels"]["pid"]: r["labels"] for r in answer["readings"] if r["family"] == "gpu_process"}
    assert (told["4712"]["run"], told["4712"]["rank"], told["4712"]["command"]) == ("run1", "1", "pt_main_thread")
    assert "run" not in told["99"]


def test_used_memory_is_without_what_the_driver_keeps_and_says_so_where_an_old_driver_cannot_part_them(passes: Passes) -> None:
    both = {"0__nvmlDeviceGetMemoryInfo_v2": f"{23028 * MIB} {513 * MIB} {11067 * MIB} {11448 * MIB}"}
    both["0__nvmlDeviceGetMemoryInfo"] = f"{23028 * MIB} {11067 * MIB} {11961 * MIB}"
    told = of(passes(scenario(1, **both)))[uuid(0)]
    assert (told["gpu.memory.used"], told["gpu.memory.reserved"]) == (11448 * MIB, 513 * MIB)
    old = of(passes(scenario(1, **(both | {"0__nvmlDeviceGetMemoryInfo_v2": "!13"}))))[uuid(0)]
    assert old["gpu.memory.used"] == 11961 * MIB and "gpu.memory.reserved" not in old


# --- C09, C10, C16 -------------------------------------------------------------------------------


def test_a_counter_that_keeps_falling_is_no_counter_and_is_left_out_with_a_flag(passes: Passes) -> None:
    counts = [57, 21, 60, 20, 58, 19, 61, 18, 62]  # falls for the fourth time at the eighth
    seen = [passes(scenario(1, **{"0__nvmlDeviceGetTotalEccErrors.0.0": str(count)})) for count in counts]
    assert [values(a, "gpu.ecc.volatile.corrected").get(uuid(0)) for a in seen] == [57, 21, 60, 20, 58, 19, 61, None, None]
    assert [values(a, "gpu.counters.fallen")[uuid(0)] for a in seen] == [0] * 7 + [1, 1]
    assert all(values(a, "gpu.power") == {uuid(0): 100.0} for a in seen)


def test_clock_changes_are_reasons_and_never_events(passes: Passes) -> None:
    masks = [0x1, 0x20, 0x44, 0x88, 0x0]
    seen = [passes(scenario(1, **{"0__nvmlDeviceGetCurrentClocksEventReasons": str(mask)})) for mask in masks]
    assert [a["events"] for a in seen] == [[]] * 5
    assert [values(a, "gpu.throttle.hw_thermal")[uuid(0)] for a in seen] == [0, 0, 1, 0, 0]
    assert [values(a, "gpu.throttle.hw_power_brake")[uuid(0)] for a in seen] == [0, 0, 0, 1, 0]
    assert [values(a, "gpu.throttle.sw_thermal")[uuid(0)] for a in seen] == [0, 1, 0, 0, 0]


def test_an_older_driver_tells_reasons_and_link_errors_by_their_older_names(passes: Passes) -> None:
    old = {
        "0__nvmlDeviceGetCurrentClocksThrottleReasons": "128",
        "0__field.91": "1",
        "0__nvmlDeviceGetNvLinkState.0": "1",
    }
    answer = passes(scenario(1, **old, **{"0__nvmlDeviceGetNvLinkErrorCounter.0.0": "7", "0__nvmlDeviceGetNvLinkErrorCounter.0.2": "8"}))
    assert values(answer, "gpu.throttle.hw_power_brake") == {uuid(0): 1}
    assert of(answer, "gpu_link")[uuid(0)] == {"gpu_link.up": 1, "gpu_link.replays": 7, "gpu_link.crc_errors": 8}


# --- C10, C12 ------------------------------------------------------------------------------------


def test_a_link_that_is_down_for_a_poll_is_told_as_it_is_each_time_and_is_no_event(passes: Passes) -> None:
    links = {"0__field.91": "1"}
    seen = [passes(scenario(1, **links, **{"0__nvmlDeviceGetNvLinkState.0": state})) for state in ("1", "0", "1", "!3")]
    assert [of(a, "gpu_link").get(uuid(0), {}).get("gpu_link.up") for a in seen] == [1, 0, 1, None]
    assert [a["events"] for a in seen] == [[]] * 4


def test_rows_that_wait_for_a_reset_and_rows_that_could_not_be_remapped_are_two_things(passes: Passes) -> None:
    seen = [passes(scenario(1, **{"0__nvmlDeviceGetRemappedRows": rows})) for rows in ("3 0 1 0", "3 1 0 1", "!3")]
    told = [of(a)[uuid(0)] for a in seen]
    assert [(t.get("gpu.remap.pending"), t.get("gpu.remap.failed")) for t in told] == [(1, 0), (0, 1), (None, None)]
    assert (told[1]["gpu.remap.correctable"], told[1]["gpu.remap.uncorrectable"]) == (3, 1)


def test_text_that_is_no_text_costs_that_text_only(passes: Passes) -> None:
    answer = passes(scenario(1, **{"0__nvmlDeviceGetSerial": "16\x00\u2028", "*__nvmlDeviceGetName": 'a"b\\c'}))
    (gpu,) = [r for r in answer["readings"] if r["family"] == "gpu"]
    assert gpu["labels"]["model"] == 'a"b\\c' and gpu["values"]["gpu.up"] == 1
