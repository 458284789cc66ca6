#!/usr/bin/env python3
"""holdfast-kube with a stand-in for kubelet, on a machine with stand-in GPUs: what it offers, gives and refuses, and how it lives with kubelet."""

import contextlib
import datetime
import json
import os
import pathlib
import queue
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

KUBE = str(pathlib.Path(sys.argv.pop(2)).resolve())
KUBELET = str(pathlib.Path(sys.argv.pop(2)).resolve())

import engines  # noqa: E402
from boxes import Box  # noqa: E402
from engines import TIMEOUT, Unavailable  # noqa: E402
from gpu_stage import BIN, CONFIG, NODES, SECOND_NODE, SECOND_UUID, UUID, UVM, Stage  # noqa: E402
from support import HOLDFAST, Case, run_suite  # noqa: E402

GPU = "nvidia.com/gpu"
PLUGINS = "/var/lib/kubelet/device-plugins"
REGISTRY = "/var/lib/kubelet/plugins_registry"
SET = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]
WAIT = 30


def eventually(check, seconds: float = WAIT, pause: float = 0.01):
    end = time.monotonic() + seconds
    while not (answer := check()) and time.monotonic() < end:
        time.sleep(pause)
    return answer


class Process:
    """A program on the stage whose lines are read as they come."""

    def __init__(self, stage: Stage, *command: str):
        self.process = subprocess.Popen(
            stage.inside([*command]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        self.fresh: queue.Queue[str] = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            self.fresh.put(line)

    def kill(self, by: int = signal.SIGKILL) -> int:
        if self.process.poll() is None:
            self.process.send_signal(by)
        code = self.process.wait(timeout=TIMEOUT)
        self.reader.join(timeout=TIMEOUT)
        self.process.stdin.close()
        self.process.stdout.close()
        return code


class Kubelet(Process):
    def __init__(self, stage: Stage, *options: str):
        super().__init__(stage, KUBELET, PLUGINS, *options)
        self.wait(lambda event: event["event"] == "ready")

    def wait(self, wanted, seconds: float = WAIT) -> dict:
        """The next event that is wanted; earlier ones are skipped."""
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.fresh.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError("kubelet saw only:\n" + "\n".join(self.lines)) from None
            if line.startswith("{") and wanted(event := json.loads(line)):
                return event

    def devices(self, wanted=lambda devices: True, resource: str = GPU, seconds: float = WAIT) -> dict:
        """A list of devices that is wanted."""
        is_it = lambda event: event["event"] == "list" and event["resource"] == resource and wanted(event["devices"])  # noqa: E731
        return self.wait(is_it, seconds)["devices"]

    def ask(self, *words: str) -> dict:
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        return self.wait(lambda event: event["event"] in ("allocated", "preferred", "prestarted", "error"))

    def allocate(self, *ids: str, resource: str = GPU) -> dict:
        answer = self.ask("allocate", resource, *ids)
        assert answer["event"] == "allocated", answer
        return answer["containers"][0]


def is_calm(count, seconds: float) -> bool:
    before = count()
    time.sleep(seconds)
    return count() == before


def all_are(health: str):
    return lambda devices: devices and all(device["health"] == health for device in devices.values())


HEALTHY, UNHEALTHY = all_are("Healthy"), all_are("Unhealthy")


class Stands(Case):
    """On a stage with two GPUs and holdfast-kube."""

    stage: Stage

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root")
        try:
            hook = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="hf-hook-", dir="/tmp"))) / "hook"
            hook.write_text("#!/bin/sh\nexec cat >/dev/null\n")  # crun fails where a hook ends without reading the state
            hook.chmod(0o755)
            cls.hook = hook
            cls.stage = Stage("v1", {"holdfast": HOLDFAST, "holdfast-kube": KUBE, "kubelet": KUBELET, "holdfast-runtime": f"{hook}"})
        except Unavailable as error:
            raise unittest.SkipTest(str(error)) from None
        cls.addClassCleanup(cls.stage.close)
        # A /dev of its own: nodes are removed and created here.
        cls.stage.call("sh", "-ec", "mkdir -p /run/dev && cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /run/dev/ && mkdir /run/dev/shm /run/dev/pts && mount --bind /run/dev /dev && mount -t tmpfs shm /dev/shm && mount -t devpts -o newinstance,ptmxmode=666 devpts /dev/pts && ln -s pts/ptmx /dev/ptmx")

    def setUp(self):
        super().setUp()
        self.reset_directory()
        self.stage.call("rm", "-rf", "/var/run/cdi", "/run/holdfast")
        self.stage.path("/etc/holdfast/config.yaml").write_text(CONFIG)
        for path, (major, minor) in (NODES | SECOND_NODE).items():
            self.make_node(path, major, minor)

    def reset_directory(self) -> None:
        self.stage.call("sh", "-ec", f"rm -rf {PLUGINS} /var/lib/kubelet/pods && mkdir -p {PLUGINS}")

    def make_node(self, path: str, major: int, minor: int) -> None:
        self.stage.call("sh", "-ec", f"rm -f {path} && mknod -m 666 {path} c {major} {minor}")

    def check_opens_exactly(self, container: engines.Container, given: list[str]) -> None:
        """Nodes that were not given are created inside, as only root of the host could."""
        root = pathlib.Path(f"/proc/{container.pid}/root")
        for path, numbers in (NODES | SECOND_NODE | {"/dev/fuse": (10, 229), "/dev/kmsg": (1, 11)}).items():
            if path in given:
                self.assertEqual(container.opens(path), "ENXIO", path)  # allowed; there is no driver
                continue
            self.assertFalse((root / path[1:]).exists(), path)
            os.mknod(root / path[1:], 0o666 | stat.S_IFCHR, os.makedev(*numbers))
            self.assertEqual(container.opens(path), "EPERM", path)

    def start(self, kind, *arguments):
        process = kind(self.stage, *arguments)
        self.addCleanup(process.kill)
        return process


class Plugin(Stands):
    def kubelet(self, *options: str) -> Kubelet:
        return self.start(Kubelet, *options)

    def plugin(self, config: str = "", *options: str) -> Process:
        self.enterContext(self.stage.config(CONFIG + config))
        return self.start(Process, f"{BIN}/holdfast-kube", *options)

    def both(self, config: str = "", *options: str) -> tuple[Kubelet, Process]:
        kubelet = self.kubelet()
        return kubelet, self.plugin(config, *options)

    # What it offers and gives

    def test_offers_the_gpus_and_gives_whole_sets(self):
        kubelet, plugin = self.both()
        self.assertTrue(kubelet.wait(lambda event: event["event"] == "registered")["prefers"])
        self.assertEqual(set(kubelet.devices(HEALTHY)), {UUID, SECOND_UUID})
        given = kubelet.allocate(UUID)
        self.assertEqual([device[0] for device in given["devices"]], ["/dev/nvidia0", *SET])
        self.assertEqual({device[2] for device in given["devices"]}, {"rw"})
        self.assertEqual(given["cdi"], [f"nvidia.com/gpu={UUID}"])
        self.assertEqual(given["envs"], {"NVIDIA_VISIBLE_DEVICES": "void"})
        both = kubelet.allocate(UUID, SECOND_UUID)
        self.assertEqual(len(both["devices"]), 5)
        spec = self.stage.path("/run/cdi/holdfast-nvidia.yaml").read_text()
        self.assertIn(UUID, spec)
        self.assertEqual(plugin.kill(signal.SIGTERM), 0, plugin.lines)
        kubelet.wait(lambda event: event["event"] == "ended")
        self.assertEqual([name for name in os.listdir(self.stage.path(PLUGINS)) if name.startswith("holdfast")], [])

    def test_a_container_with_what_it_gave_opens_that_and_nothing_else(self):
        """By runc with exactly the nodes of the answer, and by podman with nothing but the CDI name in it."""
        kubelet, _ = self.both()
        kubelet.devices(HEALTHY)
        given = kubelet.allocate(SECOND_UUID)
        with engines.scratch_directory() as directory:
            box = Box(self.stage, directory)
            box.runtime = engines.program("runc")
            linux = box.spec["linux"]
            numbers = {path: os.stat(self.stage.path(host)).st_rdev for path, host, _ in given["devices"]}
            nodes = [{"type": "c", "path": path, "major": os.major(at), "minor": os.minor(at)} for path, at in numbers.items()]
            linux["devices"] = nodes
            rules = [{"allow": True, "type": "c", "major": node["major"], "minor": node["minor"], "access": "rw"} for node in nodes]
            linux["resources"] = {"devices": [{"allow": False, "access": "rwm"}, *rules]}
            box.write().start()
            self.addCleanup(box.call, "delete", "-f", box.name)
            self.check_opens_exactly(engines.Container("runc", "v1", box.name, box.name, box.pid), list(numbers))
        options = [argument for name in given["cdi"] for argument in ("--device", name)]
        with engines.podman("v1", gpu=False, place=lambda _: contextlib.nullcontext(self.stage), options=tuple(options)) as container:
            for path in engines.GPU_NODES:  # which the helper created in there
                if path not in numbers:
                    (pathlib.Path(f"/proc/{container.pid}/root") / path[1:]).unlink()
            self.check_opens_exactly(container, list(numbers))

    def test_without_the_hook_of_its_spec_nothing_is_offered_by_cdi(self):
        with self.stage.changed(f"umount {BIN}/holdfast-runtime", f"rm {BIN}/holdfast-runtime") as branch:
            kubelet = self.kubelet()
            plugin = Process(branch, f"{BIN}/holdfast-kube")
            self.addCleanup(plugin.kill)
            kubelet.devices(UNHEALTHY)
            self.assertIn("holdfast-runtime is not there", kubelet.ask("allocate", GPU, UUID)["message"])
        self.stage.call("sh", "-ec", f"touch {BIN}/holdfast-runtime && mount --bind {self.hook} {BIN}/holdfast-runtime")

    def test_strategies(self):
        for strategy, envs, mounts in (
            ("envvar", UUID, []),
            ("volume-mounts", "/var/run/nvidia-container-devices", [[f"/var/run/nvidia-container-devices/{UUID}", "/dev/null", True]]),
            ("cdi-annotations", "void", []),
        ):
            with self.subTest(strategy):
                kubelet, plugin = self.both(f"kube: {{strategies: [{strategy}], device_specs: false}}\n")
                kubelet.devices(HEALTHY)
                given = kubelet.allocate(UUID)
                self.assertEqual(given["envs"], {"NVIDIA_VISIBLE_DEVICES": envs})
                self.assertEqual(given["mounts"], mounts)
                self.assertEqual(given["devices"], [])
                names = {"cdi.k8s.io/holdfast_nvidia.com_gpu": f"nvidia.com/gpu={UUID}"} if "cdi" in strategy else {}
                self.assertEqual(given["annotations"], names)
                plugin.kill(), kubelet.kill()

    def test_a_config_file_of_nvidias_plugin(self):
        file = self.stage.path("/run/nvidia-plugin.yaml")
        file.write_text(
            "version: v1\nflags:\n  migStrategy: none\n  failOnInitError: true\n  plugin:\n    passDeviceSpecs: true\n    deviceListStrategy: envvar\n"
            "    deviceIDStrategy: index\nsharing:\n  timeSlicing:\n    renameByDefault: true\n    failRequestsGreaterThanOne: true\n"
            "    resources:\n    - name: nvidia.com/gpu\n      replicas: 3\n"
        )
        kubelet, _ = self.both("", "--nvidia-config", "/run/nvidia-plugin.yaml")
        resource = "nvidia.com/gpu.shared"
        self.assertEqual(set(kubelet.devices(HEALTHY, resource)), {f"{gpu}::{replica}" for gpu in (0, 1) for replica in range(3)})
        given = kubelet.allocate("1::2", resource=resource)
        self.assertEqual(given["envs"], {"NVIDIA_VISIBLE_DEVICES": "1"})
        self.assertEqual([device[0] for device in given["devices"]], ["/dev/nvidia1", *SET])
        refused = kubelet.ask("allocate", resource, "0::0", "1::0")
        self.assertIn("failRequestsGreaterThanOne", refused["message"])
        file.write_text("version: v1\nsharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 2\n")
        done = self.stage.run(f"{BIN}/holdfast-kube", "--nvidia-config", "/run/nvidia-plugin.yaml", "--check-config")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done)
        self.assertIn("sharing.mps", done.stderr)

    def test_other_classes_beside_gpus(self):
        self.make_node("/dev/fuse", 10, 229)
        kubelet, _ = self.both("kube: {resources: [{name: nvidia.com/gpu}, {name: example.com/fuse, class: fuse}], sharing: [{name: example.com/fuse, replicas: 8}]}\n")
        seen = {}
        while len(seen) < 2:
            event = kubelet.wait(lambda event: event["event"] == "list" and HEALTHY(event["devices"]))
            seen[event["resource"]] = event["devices"]
        self.assertEqual(len(seen["example.com/fuse"]), 8)
        given = kubelet.allocate("fuse::1", resource="example.com/fuse")
        self.assertEqual((given["devices"], given["envs"]), ([["/dev/fuse", "/dev/fuse", "rw"]], {}))

    def test_refuses_malformed_requests_in_one_line(self):
        kubelet, _ = self.both()
        kubelet.devices(HEALTHY)
        for ids, what in (((), "no device"), (("GPU-none",), "GPU-none"), ((UUID, UUID), "twice"), ((UUID, "fuse"), "fuse")):
            answer = kubelet.ask("allocate", GPU, *ids)
            self.assertEqual((answer["event"], answer["code"]), ("error", 3), answer)
            self.assertIn(what, answer["message"])
            self.assertNotIn("\n", answer["message"])
        self.assertEqual(kubelet.ask("prefer", GPU, "3", UUID)["event"], "error")
        self.assertEqual(kubelet.ask("prefer", GPU, "1", "GPU-none")["event"], "error")
        self.assertEqual(kubelet.ask("prestart", GPU, UUID)["event"], "prestarted")
        self.assertEqual(kubelet.ask("prefer", GPU, "1", f"{SECOND_UUID},{UUID}")["devices"], [UUID])
        self.assertEqual(kubelet.ask("prefer", GPU, "1", f"{UUID},{SECOND_UUID}", SECOND_UUID)["devices"], [SECOND_UUID])

    # Whole sets at every moment

    def test_uvm_appears_late(self):
        """The case that made GPU containers slow for months."""
        devices = self.stage.path("/proc/devices")
        without = "\n".join(line for line in devices.read_text().splitlines() if "nvidia-uvm" not in line) + "\n"
        self.stage.path("/run/devices").write_text(without)
        with self.stage.changed("mount --bind /run/devices /proc/devices", "rm -f /dev/nvidia-uvm /dev/nvidia-uvm-tools") as branch:
            kubelet = self.kubelet()
            plugin = Process(branch, f"{BIN}/holdfast-kube")
            self.addCleanup(plugin.kill)
            kubelet.devices(UNHEALTHY)
            self.assertTrue(eventually(lambda: any("/dev/nvidia-uvm is missing" in line for line in plugin.lines)), plugin.lines)
            refused = kubelet.ask("allocate", GPU, UUID)
            self.assertIn("/dev/nvidia-uvm is missing", refused["message"])
            self.stage.path("/run/devices").write_text(without.replace("\n195 nvidia\n", f"\n195 nvidia\n{UVM} nvidia-uvm\n"))
            started = time.monotonic()
            self.make_node("/dev/nvidia-uvm", UVM, 0)
            kubelet.devices(HEALTHY)
            print(f"healthy {1000 * (time.monotonic() - started):.0f} ms after the node appeared (with the test's own mknod)", file=sys.stderr)
            self.assertEqual([device[0] for device in kubelet.allocate(UUID)["devices"]], ["/dev/nvidia0", *SET])

    def test_a_removed_node_is_created_again(self):
        kubelet, plugin = self.both()
        kubelet.devices(HEALTHY)
        self.stage.call("rm", "/dev/nvidia-uvm")
        node = self.stage.path("/dev/nvidia-uvm")
        self.assertTrue(eventually(node.exists), plugin.lines)
        self.assertEqual(os.stat(node).st_rdev, os.makedev(UVM, 0))
        kubelet.allocate(UUID)

    def test_without_leave_to_create_nodes_a_device_is_unhealthy_until_its_node_is_back(self):
        self.enterContext(self.stage.config(CONFIG + "  make_nodes: false\n"))
        kubelet = self.kubelet()
        plugin = self.start(Process, f"{BIN}/holdfast-kube")
        kubelet.devices(HEALTHY)
        self.stage.call("rm", "/dev/nvidia1")
        listed = kubelet.devices(lambda devices: devices[SECOND_UUID]["health"] == "Unhealthy")
        self.assertEqual(listed[UUID]["health"], "Healthy")
        refused = kubelet.ask("allocate", GPU, UUID, SECOND_UUID)
        self.assertEqual((refused["event"], refused["code"]), ("error", 14), refused)
        self.assertIn("/dev/nvidia1 is missing", refused["message"])
        self.make_node("/dev/nvidia1", *SECOND_NODE["/dev/nvidia1"])
        kubelet.devices(HEALTHY)
        kubelet.allocate(UUID, SECOND_UUID)
        self.make_node("/dev/nvidia-uvm", UVM - 1, 0)  # the numbers of a driver that is gone
        kubelet.devices(UNHEALTHY)
        self.assertTrue(eventually(lambda: any("the driver has" in line for line in plugin.lines)), plugin.lines)

    def test_a_gpu_with_errors_is_unhealthy(self):
        """A fifo in place of the kernel log: the driver's line about the second GPU, one that is ignored, and one that a program wrote."""
        self.stage.call("sh", "-ec", "rm -f /dev/kmsg && mkfifo /dev/kmsg")
        log = os.open(self.stage.path("/dev/kmsg"), os.O_RDWR)
        self.addCleanup(os.close, log)
        kubelet, plugin = self.both()
        kubelet.devices(HEALTHY)
        os.write(log, b"4,1,1,-;NVRM: Xid (PCI:0000:65:00): 31, pid=1\n12,2,1,-;NVRM: Xid (PCI:0000:65:00): 79, forged\n4,3,1,-;NVRM: Xid (PCI:0000:66:00): 79, pid=1\n")
        listed = kubelet.devices(lambda devices: devices[SECOND_UUID]["health"] == "Unhealthy")
        self.assertEqual(listed[UUID]["health"], "Healthy", plugin.lines)
        self.assertIn("Xid", kubelet.ask("allocate", GPU, SECOND_UUID)["message"])
        self.assertFalse(any("Xid (PCI:0000:65" in line for line in plugin.lines))

    def listen_as_guard(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        (self.stage.path("/run") / "holdfast").mkdir(exist_ok=True)
        listener.bind(str(self.stage.path("/run/holdfast/holdfastd.sock")))
        listener.listen()
        listener.settimeout(WAIT)
        return listener

    def report_loss(self, listener: socket.socket, cgroup: str) -> None:
        """Of /dev/nvidia1, as holdfastd's stream of records has it."""
        client, _ = listener.accept()
        self.addCleanup(client.close)
        self.assertTrue(client.recv(4096).startswith(b"GET /api/v1/events "))
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        record = {"version": 1, "number": 1, "at": now, "id": "x", "container": "train", "engine": "docker", "kind": "attach", "hierarchy": "v2",
                  "cgroup": cgroup, "writer": {"pid": 7}, "lost": ["c 195:1 rw"], "devices": ["/dev/nvidia1"], "action": "failed", "error": "a gate above refuses"}  # fmt: skip
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\nid: 1\ndata: " + json.dumps(record).encode() + b"\n\n")

    def test_a_device_that_a_container_lost_for_good_is_unhealthy(self):
        listener = self.listen_as_guard()
        kubelet, plugin = self.both()
        kubelet.devices(HEALTHY)
        self.report_loss(listener, "/x")
        listed = kubelet.devices(lambda devices: devices[SECOND_UUID]["health"] == "Unhealthy")
        self.assertEqual(listed[UUID]["health"], "Healthy", plugin.lines)
        self.assertIn("train lost /dev/nvidia1", kubelet.ask("allocate", GPU, SECOND_UUID)["message"])

    def test_of_a_shared_device_only_what_the_pod_has_is_unhealthy(self):
        """A pod that keeps its own repair from succeeding takes nothing from those that share the GPU."""
        listener = self.listen_as_guard()
        kubelet, _ = self.both("kube: {sharing: [{name: nvidia.com/gpu, replicas: 2}]}\n")
        kubelet.devices(HEALTHY)
        pods = {}
        for number in range(4):
            pod = f"00000000-0000-0000-0000-00000000000{number}"
            kubelet.process.stdin.write(f"pod {pod} {GPU} 1\n")
            kubelet.process.stdin.flush()
            pods[kubelet.wait(lambda event: event["event"] == "admitted")["ids"][0]] = pod
        loser = next(id for id in pods if id.startswith(SECOND_UUID))
        self.report_loss(listener, f"/kubepods/pod{pods[loser]}/{'a' * 64}")
        listed = kubelet.devices(lambda devices: devices[loser]["health"] == "Unhealthy")
        self.assertEqual({id for id in listed if listed[id]["health"] == "Unhealthy"}, {loser})

    def test_a_gpu_without_its_node_does_not_keep_the_others_from_starting(self):
        self.stage.call("rm", "/dev/nvidia1")
        self.enterContext(self.stage.config(CONFIG + "  make_nodes: false\n"))
        kubelet = self.kubelet()
        self.start(Process, f"{BIN}/holdfast-kube")
        listed = kubelet.devices(lambda devices: devices[UUID]["health"] == "Healthy")
        self.assertEqual(listed[SECOND_UUID]["health"], "Unhealthy")
        kubelet.allocate(UUID)

    # Life with kubelet

    def test_kubelet_comes_later_and_restarts(self):
        plugin = self.plugin()
        time.sleep(0.5)
        kubelet = self.kubelet()
        kubelet.devices(HEALTHY)
        for _ in range(5):
            kubelet.kill()
            started = time.monotonic()
            kubelet = self.kubelet()  # removes all sockets
            kubelet.devices(HEALTHY)
            self.assertLess(time.monotonic() - started, 10, plugin.lines)  # it tries again every 30 s at the latest
            kubelet.allocate(UUID)
        self.assertLess(len(plugin.lines), 60, "it does not fill the log")

    def test_a_storm_of_restarts(self):
        plugin = self.plugin()
        for number in range(25):
            kubelet = self.kubelet()
            time.sleep(0.01 * (number % 7))
            kubelet.kill()
        kubelet = self.kubelet()
        kubelet.devices(HEALTHY)
        kubelet.allocate(UUID)
        self.assertLess(len(plugin.lines), 200, "it does not fill the log")
        self.assertEqual(len([name for name in os.listdir(self.stage.path(PLUGINS)) if name.startswith("holdfast")]), 1)

    def test_a_slow_kubelet(self):
        """One registration at a time: an impatient plugin would register again and again."""
        self.make_node("/dev/fuse", 10, 229)
        kubelet = self.kubelet("--slow", "2500")
        self.plugin("kube: {resources: [{name: nvidia.com/gpu}, {name: example.com/fuse, class: fuse}]}\n")
        for _ in range(2):
            kubelet.wait(lambda event: event["event"] == "list" and HEALTHY(event["devices"]))
        kubelet.allocate(UUID)
        time.sleep(3)
        self.assertEqual(sum('"registered"' in line for line in kubelet.lines), 2, kubelet.lines)

    def test_the_directory_vanishes(self):
        kubelet, _ = self.both()
        kubelet.devices(HEALTHY)
        kubelet.kill()
        self.stage.call("sh", "-ec", f"mv {PLUGINS} {PLUGINS}.gone && rm -rf {PLUGINS}.gone")  # the plugin may create a socket at any moment
        time.sleep(1.5)
        self.stage.call("mkdir", "-p", PLUGINS)
        self.kubelet().devices(HEALTHY)

    def test_a_list_that_kubelet_gives_up_is_registered_again(self):
        self.check_given_up(*self.both())

    def test_a_list_that_kubelet_gives_up_is_found_again(self):
        """kubelet looks at a socket of its registry only when it appears."""
        self.stage.call("sh", "-ec", f"rm -rf {REGISTRY} && mkdir -p {REGISTRY}")
        self.check_given_up(self.kubelet("--registry", REGISTRY), self.plugin("kube: {registration: watcher}\n"))

    def check_given_up(self, kubelet: Kubelet, _: Process) -> None:
        kubelet.devices(HEALTHY)
        kubelet.process.stdin.write(f"disconnect {GPU}\n")
        kubelet.process.stdin.flush()
        kubelet.wait(lambda event: event["event"] == "ended")
        kubelet.devices(HEALTHY)

    def test_killed_at_any_moment_it_comes_back(self):
        kubelet, plugin = self.both()
        for pause in (0.0, 0.05, 0.3, 1.0):
            time.sleep(pause)
            plugin.kill()
            plugin = self.start(Process, f"{BIN}/holdfast-kube")
        self.assertTrue(eventually(lambda: kubelet.ask("allocate", GPU, UUID)["event"] == "allocated", pause=0.2), plugin.lines)
        self.assertTrue(eventually(lambda: len([name for name in os.listdir(self.stage.path(PLUGINS)) if name.startswith("holdfast")]) == 1))

    def test_a_rolling_update_of_two_instances(self):
        for option in ((), ("--old",)):
            with self.subTest(option):
                kubelet = self.kubelet(*option)
                old = self.plugin()
                kubelet.devices(HEALTHY)
                new = self.start(Process, f"{BIN}/holdfast-kube")
                first = kubelet.wait(lambda event: event["event"] == "registered")["endpoint"]
                kubelet.devices(HEALTHY)
                registrations = lambda: sum("registered" in line for line in kubelet.lines)  # noqa: E731
                self.assertTrue(eventually(lambda: is_calm(registrations, 2), 20), "they take turns")
                old.kill(signal.SIGTERM)
                given = eventually(lambda: (answer := kubelet.ask("allocate", GPU, UUID))["event"] == "allocated" and answer, pause=0.2)
                self.assertEqual(given and given["containers"][0]["cdi"], [f"nvidia.com/gpu={UUID}"], first)
                new.kill(), kubelet.kill()

    def test_many_devices(self):
        """64 GPUs with 10 replicas each."""
        self.stage.call("sh", "-ec", "rm -rf /run/gpus && mkdir -p /run/gpus")
        for number in range(64):
            address = f"0000:{number:02x}:00.0"
            directory = self.stage.path(f"/run/gpus/{address}")
            directory.mkdir()
            (directory / "information").write_text(f"Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-{number:032}\nDevice Minor: \t {number}\nGPU Excluded:\t No\n")
        with self.stage.changed("mount --bind /run/gpus /proc/driver/nvidia/gpus") as branch:
            self.enterContext(self.stage.config(CONFIG + "kube: {sharing: [{name: nvidia.com/gpu, replicas: 10}]}\n"))
            kubelet = self.kubelet()
            plugin = Process(branch, f"{BIN}/holdfast-kube")
            self.addCleanup(plugin.kill)
            devices = kubelet.devices(HEALTHY)
            self.assertEqual(len(devices), 640)
            wanted = sorted(devices)[:64]
            self.assertEqual(len(kubelet.ask("prefer", GPU, "8", ",".join(wanted))["devices"]), 8)
            self.assertEqual(len(kubelet.allocate(*wanted[:8])["devices"]), 1 + len(SET))

    def test_the_hook_of_specs_is_where_the_config_says(self):
        self.stage.call("sh", "-ec", "mkdir -p /run/elsewhere && cp /run/hf-e2e/bin/holdfast-runtime /run/elsewhere/")
        kubelet, _ = self.both("cdi: {hook: /run/elsewhere/holdfast-runtime}\n")
        kubelet.devices(HEALTHY)
        spec = self.stage.path("/run/cdi/holdfast-nvidia.yaml").read_text()
        self.assertIn("/run/elsewhere/holdfast-runtime", spec)
        self.assertNotIn(f"{BIN}/holdfast-runtime", spec)

    def test_the_status_file(self):
        kubelet, plugin = self.both()
        kubelet.devices(HEALTHY)
        kubelet.allocate(UUID)
        kubelet.ask("allocate", GPU, "none")
        file = self.stage.path("/run/holdfast/kube.json")
        read = lambda: json.loads(file.read_text())["resources"][0]  # noqa: E731
        self.assertTrue(eventually(lambda: file.exists() and read()["refused"] == 1), plugin.lines)
        self.assertEqual((read()["resource"], read()["is_connected"], read()["allocated"]), (GPU, True, 1))
        self.assertEqual([device["is_healthy"] for device in read()["devices"]], [True, True])
        self.assertIn(f"kubelet is offered {GPU}: 2 of 2 healthy, 1 allocations, 1 refused\n", self.stage.run(f"{BIN}/holdfast", "devices").stdout)
        offers = json.loads(self.stage.run(f"{BIN}/holdfast", "devices", "-o", "json").stdout)["offers"]
        self.assertEqual((offers[0]["resource"], offers[0]["connected"]), (GPU, True))
        plugin.kill(signal.SIGTERM)
        self.assertNotIn("kubelet is offered", self.stage.run(f"{BIN}/holdfast", "devices").stdout)

    def test_one_that_hangs_is_not_well_and_offers_nothing(self):
        def health() -> tuple[int, str]:
            done = self.stage.run(f"{BIN}/holdfast-kube", "--check-health")
            return done.returncode, done.stdout + done.stderr

        self.assertEqual(health(), (1, "holdfast-kube does not run\n"))
        kubelet = self.kubelet()
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        name = f"hf-notify-{os.getpid()}"
        manager.bind("\0" + name)
        manager.settimeout(WAIT)
        plugin = self.start(Process, "env", f"NOTIFY_SOCKET=@{name}", "WATCHDOG_USEC=600000", f"{BIN}/holdfast-kube")
        kubelet.devices(HEALTHY)
        states = {manager.recv(4096).decode().split("\n")[0] for _ in range(8)}
        self.assertEqual(states, {"READY=1", "WATCHDOG=1"})
        self.assertEqual(health(), (0, "ok\n"))
        with self.stage.config("kube: {mistake: 1}\n"):
            self.assertEqual(health(), (0, "ok\n"), "it goes on with the configuration that it has")
        file = self.stage.path("/run/holdfast/kube.json")
        file.unlink()
        self.assertTrue(eventually(file.exists), plugin.lines)
        pid = json.loads(file.read_text())["pid"]
        os.kill(pid, signal.SIGSTOP)
        os.utime(file, (0, time.time() - 130))
        self.assertEqual(health(), (1, f"holdfast-kube hangs: no heartbeat of process {pid} for over 120 s\n"))
        self.assertNotIn("kubelet is offered", self.stage.run(f"{BIN}/holdfast", "devices").stdout)
        os.kill(pid, signal.SIGCONT)
        self.assertTrue(eventually(lambda: health()[0] == 0), plugin.lines)
        self.assertIn("kubelet is offered", self.stage.run(f"{BIN}/holdfast", "devices").stdout)

    def test_labels_for_node_feature_discovery(self):
        kubelet, plugin = self.both("kube: {features: /run/features}\n")
        kubelet.devices(HEALTHY)
        file = self.stage.path("/run/features")
        self.addCleanup(file.unlink, missing_ok=True)
        self.assertTrue(eventually(file.exists), plugin.lines)
        labels = dict(line.split("=") for line in file.read_text().splitlines())
        self.assertEqual((labels["nvidia.com/gpu.count"], labels["nvidia.com/gpu.replicas"]), ("2", "1"))
        self.assertRegex(labels["nvidia.com/gpu.product"], r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
        self.assertRegex(labels["nvidia.com/cuda.driver.major"], r"^\d+$")

    def test_once(self):
        done = self.stage.run(f"{BIN}/holdfast-kube", "--once")
        self.assertEqual(done.returncode, 0, done)
        resource = json.loads(done.stdout)["resources"][0]
        self.assertEqual([device["id"] for device in resource["devices"]], [UUID, SECOND_UUID])
        self.assertEqual(resource["devices"][0]["allocation"]["nodes"], ["/dev/nvidia0", *SET])
        yaml = self.stage.run(f"{BIN}/holdfast-kube", "--once", "-o", "yaml")
        self.assertEqual((yaml.returncode, yaml.stderr), (0, ""))
        self.assertIn(f'"id": "{UUID}"', yaml.stdout)
        self.assertIn('"version": 1', yaml.stdout.splitlines())
        with self.stage.changed("rm /dev/nvidia-uvm"):
            done = self.stage.run(f"{BIN}/holdfast-kube", "--once")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("/dev/nvidia-uvm is missing", done.stdout)


if __name__ == "__main__":
    run_suite()
