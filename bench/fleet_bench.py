#!/usr/bin/env python3
"""fleet_bench.py KUBECTL-HOLDFAST [NODES…]: what `kubectl holdfast` costs over 50 and 500 nodes of a stand-in for kubectl.

Each node answers with some 100 KiB: a doctor with 10 findings, a ps with 60 containers. Wall time, CPU time and the largest
memory of the plugin itself, from its own resource usage; the stand-in is a shell script and takes most of the time.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

STAND_IN = pathlib.Path(__file__).parent.parent / "tests/support/kubectl"
KIBIBYTE = 1024


def finding(number: int) -> dict:
    return {
        "code": "HF-201",
        "severity": "warning",
        "subject": f"train-{number}/main",
        "container": f"{number:064x}",
        "verdict": "the next reload takes /dev/nvidia0 away: systemd does not know of it",
        "evidence": [f"line {line} of what was read about it" for line in range(6)],
        "cure": [f"holdfast heal train-{number}/main"],
        "needs_all_cures": False,
    }


def container(number: int) -> dict:
    owed = [{"path": f"/dev/nvidia{unit}", "class": "nvidia", "part": "unit", "because": ["kubelet: pod x"], "access": "rw"} for unit in range(8)]
    pod = {"uid": f"{number:032x}", "name": f"train-{number}", "namespace": "ml", "container": "main"}
    return {"id": f"{number:064x}", "name": None, "engine": "containerd", "pod": pod, "started_at": "2026-11-15T05:00:00Z", "cpus": "0-63", "state": "ok", "findings": [], "owed": owed, "refused": []}


def pod_of(number: int) -> dict:
    """Of the size that real ones have."""
    env = [{"name": f"VARIABLE_{i}", "value": "x" * 100} for i in range(60)]
    return {
        "metadata": {"name": f"guard-{number:05}", "namespace": "holdfast"},
        "spec": {"nodeName": f"gpu-{number:05}", "containers": [{"name": "guard", "env": env}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def write_stage(stage: pathlib.Path, nodes: int) -> None:
    (stage / "pods.json").write_text(json.dumps({"items": [pod_of(number) for number in range(nodes)]}, indent=4))
    doctor = {"version": 1, "summary": "", "containers": 60, "states": {"ok": 60}, "findings": [finding(i) for i in range(10)], "guard": "holdfastd runs (v2=tracepoints)", "notes": []}
    ps = {"version": 1, "containers": [container(i) for i in range(60)], "notes": []}
    for name, document in (("doctor", doctor), ("ps", ps)):
        (stage / f"{name}.json").write_text(json.dumps(document, indent=2))


def headline_of(output: str) -> str:
    """A run in which nodes did not answer measures something else."""
    return json.loads(output)["verdict"]["headline"] if output.startswith("{") else output.split("\n", 1)[0]


def measure(plugin: str, stage: pathlib.Path, arguments: list[str]) -> tuple[float, float, float, str]:
    """Seconds, CPU seconds of plugin and kubectls, MiB of the plugin, the headline. wait4 would count the children's memory as well."""
    environment = os.environ | {"PATH": f"{STAND_IN}:{os.environ['PATH']}", "KUBECTL_STAGE": str(stage)}
    with open(stage / "output", "wb") as output:
        started = time.monotonic()
        process = subprocess.Popen([plugin, *arguments], env=environment, stdout=output)
        largest = 0
        status = pathlib.Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            try:
                found = re.search(r"VmHWM:\s+(\d+)", status.read_text())
                largest = max(largest, int(found.group(1)) if found else 0)
            except OSError:
                pass
            time.sleep(0.02)
        took = time.monotonic() - started
    used = os.times()
    return took, used.children_user + used.children_system, largest / KIBIBYTE, headline_of((stage / "output").read_text())


def main() -> None:
    plugin = sys.argv[1]
    counts = [int(argument) for argument in sys.argv[2:]] or [50, 500]
    cpu_before = 0.0
    for arguments in (["doctor"], ["ps"], ["ps", "-o", "json"]):
        for nodes in counts:
            with tempfile.TemporaryDirectory(prefix="hf-bench-") as directory:
                stage = pathlib.Path(directory)
                write_stage(stage, nodes)
                took, cpu, largest, headline = measure(plugin, stage, arguments)
                print(f"{' '.join(arguments):12} {nodes:5} nodes: {took:6.2f} s, CPU {cpu - cpu_before:6.2f} s, {largest:6.1f} MiB: {headline}")
                cpu_before = cpu


if __name__ == "__main__":
    main()
