#!/usr/bin/env python3
"""On a host with an NVIDIA GPU and root: what the DRA driver publishes beside what nvidia-smi says, and what a claim gets.

usage: dra_test.py HOLDFAST HOLDFAST-KUBE KUBELET_STAND_IN HOLDFAST-RUNTIME, the last one beside HOLDFAST-KUBE or installed; exit 77 if there is no GPU to test with.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
from dra_api import ApiServer  # noqa: E402

HOLDFAST, KUBE, KUBELET = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:4])
DRIVER = "gpu.holdfast.dev"
WAIT = 60


def skip(why: str) -> None:
    print(f"skipped: {why}")
    sys.exit(77)


def eventually(check, what: str):
    end = time.monotonic() + WAIT
    while not (answer := check()):
        if time.monotonic() > end:
            raise SystemExit(f"FAILED: {what}")
        time.sleep(0.05)
    return answer


def ask_smi(field: str) -> str:
    return subprocess.run(["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits"], check=True, capture_output=True, text=True, timeout=WAIT).stdout.splitlines()[0].strip()


def check(name: str, seen, wanted) -> None:
    if seen != wanted:
        raise SystemExit(f"FAILED: {name} is {seen}, wanted {wanted}")
    print(f"{name}: {seen}")


def check_device(device: dict, uuid: str) -> None:
    attributes = device["attributes"]
    check("uuid", attributes["uuid"]["string"], uuid)
    check("productName", attributes["productName"]["string"], ask_smi("name"))
    numbers = [str(int(part)) for part in ask_smi("driver_version").split(".")]
    check("driverVersion", attributes["driverVersion"]["version"], ".".join([*numbers, "0"][:3]))
    print(f"others: {json.dumps({name: value for name, value in attributes.items() if name not in ('uuid', 'productName', 'driverVersion')})}")
    bytes_ = device["capacity"]["memory"]["value"]
    total = int(ask_smi("memory.total"))
    unit = {"Gi": 1024, "Mi": 1, "Ki": 1 / 1024}[bytes_[-2:]]
    published = int(bytes_[:-2]) * unit
    if abs(published - total) > total / 50:
        raise SystemExit(f"FAILED: memory is {published} MiB, nvidia-smi says {total}")
    print(f"memory: {bytes_}, nvidia-smi: {total} MiB")


def lines_of(file: pathlib.Path, event: str) -> list[dict]:
    return [one for one in map(json.loads, filter(lambda line: line.startswith("{"), file.read_text().splitlines())) if one["event"] == event]


def run(directory: pathlib.Path) -> None:
    api = ApiServer()
    server = {"clusters": [{"name": "it", "cluster": {"server": f"http://127.0.0.1:{api.port}"}}], "users": [{"name": "it", "user": {}}]}
    (directory / "kubeconfig").write_text(json.dumps(server | {"apiVersion": "v1", "kind": "Config", "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}], "current-context": "it"}))
    for name in ("plugins", "registry", "device-plugins"):
        (directory / name).mkdir()
    (directory / "config.yaml").write_text(
        f"kube: {{device_plugin: false, registry: {directory}/registry, api: {{kubeconfig: {directory}/kubeconfig, node: node1, events: false, condition: false}},"
        f" dra: {{enabled: true, directory: {directory}/plugins}}}}\ncdi: {{file: {directory}/gpus.yaml}}\n"
    )
    with open(directory / "kubelet.log", "w") as kubelet_log, open(directory / "driver.log", "w") as driver_log:
        kubelet = subprocess.Popen([KUBELET, str(directory / "device-plugins"), "--registry", str(directory / "registry")], stdin=subprocess.PIPE, stdout=kubelet_log, text=True)
        driver = subprocess.Popen([KUBE, "--config", str(directory / "config.yaml")], stderr=driver_log)
    try:
        uuid = ask_smi("uuid")
        name = uuid.lower()
        device = eventually(lambda: api.devices().get(name), f"{name} is not published:\n{(directory / 'driver.log').read_text()}")
        check_device(device, uuid)
        eventually(lambda: lines_of(directory / "kubelet.log", "driver"), "kubelet does not find the driver")
        claim = api.allocate("gpus", name)
        kubelet.stdin.write(" ".join(["prepare", DRIVER, "pod-1", *claim]) + "\n")
        kubelet.stdin.flush()
        answer, = eventually(lambda: lines_of(directory / "kubelet.log", "prepared"), "kubelet gets no answer")
        prepared = answer["claims"][claim[2]]
        check("error", prepared["error"], "")
        check("CDI names", prepared["devices"][0]["cdi"], [f"nvidia.com/gpu={uuid}"])
        check("in the spec", uuid in (directory / "gpus.yaml").read_text(), True)
        checked = subprocess.run([HOLDFAST, "cdi", "check", str(directory / "gpus.yaml")], capture_output=True, text=True, timeout=WAIT, check=False)
        check("holdfast cdi check", checked.returncode, 0)
        health = eventually(lambda: lines_of(directory / "kubelet.log", "health"), "kubelet hears nothing of its health")[-1]
        check("health", health["devices"][name]["health"], "Healthy")
        print(f"prepared in {answer['ms']:.1f} ms; {next(line for line in pathlib.Path(f'/proc/{driver.pid}/status').read_text().splitlines() if 'VmRSS' in line)}")
    finally:
        driver.terminate()
        print(f"ended with {driver.wait(timeout=WAIT)}\n{(directory / 'driver.log').read_text()}")
        kubelet.kill()
        api.stop()


def main() -> None:
    if os.geteuid() != 0:
        skip("needs root")
    if not pathlib.Path("/dev/nvidiactl").exists() or not shutil.which("nvidia-smi"):
        skip("needs an NVIDIA GPU")
    if not (pathlib.Path(KUBE).parent / "holdfast-runtime").exists() and not pathlib.Path("/usr/bin/holdfast-runtime").exists():
        skip("needs holdfast-runtime, the hook of the CDI spec")
    with tempfile.TemporaryDirectory(prefix="hf-dra-") as directory:
        run(pathlib.Path(directory))


main()
