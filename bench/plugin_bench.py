#!/usr/bin/env python3
"""plugin_bench.py HOLDFAST HOLDFAST-KUBE KUBELET_STAND_IN: what the device plugin costs, on stand-in GPUs and with a stand-in for kubelet. Needs root.

Memory with 8 GPUs and with 64 GPUs of 10 replicas, the time of Allocate as kubelet sees it, from a device node's appearance
to Healthy at kubelet, and from a kubelet's start to the first list.
"""

import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/e2e"))

import plugin_test  # noqa: E402 (takes the arguments)
from gpu_stage import BIN, CONFIG, UVM  # noqa: E402
from plugin_test import GPU, HEALTHY, UNHEALTHY, Kubelet, Process  # noqa: E402


def memory(process: Process) -> str:
    """Of the program behind nsenter, which execs it."""
    lines = pathlib.Path(f"/proc/{process.process.pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("VmRSS:"))


def show(name: str, milliseconds: list[float]) -> None:
    ordered = sorted(milliseconds)
    at = lambda share: ordered[min(len(ordered) - 1, int(len(ordered) * share))]  # noqa: E731
    print(f"{name:45} n {len(ordered):5}  median {statistics.median(ordered):7.2f} ms  p99 {at(0.99):7.2f} ms  max {ordered[-1]:7.2f} ms")


def make_gpus(stage, count: int) -> None:
    stage.call("sh", "-ec", "rm -rf /run/gpus && mkdir -p /run/gpus")
    for number in range(count):
        directory = stage.path(f"/run/gpus/0000:{number:02x}:00.0")
        directory.mkdir()
        (directory / "information").write_text(f"Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-{number:032}\nDevice Minor: \t {number}\nGPU Excluded:\t No\n")


def measure(case: plugin_test.Plugin, gpus: int, replicas: int) -> None:
    stage = case.stage
    case.setUp()
    make_gpus(stage, gpus)
    sharing = f"kube: {{sharing: [{{name: {GPU}, replicas: {replicas}}}]}}\n" if replicas > 1 else ""
    with stage.changed("mount --bind /run/gpus /proc/driver/nvidia/gpus") as branch, stage.config(CONFIG + "  make_nodes: true\n" + sharing):
        kubelet = Kubelet(stage)
        plugin = Process(branch, f"{BIN}/holdfast-kube")
        try:
            devices = sorted(kubelet.devices(HEALTHY))
            print(f"{gpus} GPUs, {replicas} replicas of each: {len(devices)} devices")
            took = []
            for i in range(1000):
                answer = kubelet.ask("allocate", GPU, devices[i % len(devices)])
                took.append(answer["us"] / 1000)
            show("  Allocate", took)
            print(f"  memory of holdfast-kube: {int(memory(plugin)) / 1024:.1f} MiB")
            took = []
            for _ in range(10):
                kubelet.kill()
                started = time.monotonic()
                kubelet = Kubelet(stage)
                kubelet.devices(HEALTHY)
                took.append(1000 * (time.monotonic() - started))
            show("  kubelet's start to its first list", took)
        finally:
            plugin.kill()
            kubelet.kill()
    case.doCleanups()


def measure_nodes(case: plugin_test.Plugin) -> None:
    """By mknod(2) in this process: the namespace's /dev is seen through /proc."""
    stage = case.stage
    case.setUp()
    with stage.config(CONFIG + "  make_nodes: false\n"):
        kubelet = Kubelet(stage)
        plugin = Process(stage, f"{BIN}/holdfast-kube")
        try:
            kubelet.devices(HEALTHY)
            node = stage.path("/dev/nvidia-uvm")
            took = []
            for _ in range(50):
                os.unlink(node)
                kubelet.devices(UNHEALTHY)
                time.sleep(0.02)
                started = time.monotonic()
                os.mknod(node, 0o020666, os.makedev(UVM, 0))
                kubelet.devices(HEALTHY)
                took.append(1000 * (time.monotonic() - started))
            show("a node's appearance to Healthy at kubelet", took)
        finally:
            plugin.kill()
            kubelet.kill()
    case.doCleanups()


def main() -> None:
    plugin_test.Plugin.setUpClass()
    case = plugin_test.Plugin()
    try:
        measure(case, 8, 1)
        measure(case, 64, 10)
        measure_nodes(case)
    finally:
        plugin_test.Plugin.doClassCleanups()


if __name__ == "__main__":
    main()
