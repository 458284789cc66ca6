#!/usr/bin/env python3
"""holdfastd and holdfast-kube with an API server: what it is told about a pod of a real containerd whose devices are taken away, and how both live
without it.

The server is our own (tests/support/api_server.py), which plays failures. With HOLDFAST_KUBE_APISERVER and HOLDFAST_ETCD, or kube-apiserver and etcd in
PATH, the same is written to a real one.
"""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

KUBE = str(pathlib.Path(sys.argv.pop(3)).resolve())
sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))

import api_server  # noqa: E402
import attack  # noqa: E402
import engines  # noqa: E402
from api_server import ApiServer, Cluster, kubeconfig, make_certificates  # noqa: E402
from engines import FUSE, Unavailable  # noqa: E402
from guarded import HOLDFASTD, eventually, guarding, other_guards, policy, wait_for_our_turn  # noqa: E402
from real_api_server import RealApiServer  # noqa: E402
from support import Case, free_port, holdfast, run_suite  # noqa: E402

NODES = {FUSE: (10, 229)}  # a device whose driver is there
NODE = "gpu-7"
NAMESPACE = "hf-e2e"
WAIT = 60


def setUpModule():
    wait_for_our_turn()


class Kube:
    """holdfast-kube with a /run/holdfast of its own, and with DIRECTORY/resolv.conf where there is one."""

    def __init__(self, directory: pathlib.Path, guard: pathlib.Path, options: str):
        self.log = directory / "kube.log"
        config = directory / "kube.yaml"
        (directory / "plugins").mkdir(exist_ok=True)
        config.write_text(f"web: {{socket: {guard}}}\nkube:\n  directory: {directory}/plugins\n  api: {options}\n")
        resolver = directory / "resolv.conf"
        mount = f"mount --bind {resolver} /etc/resolv.conf && " if resolver.exists() else ""
        script = f'mkdir -p /run/holdfast && mount -t tmpfs none /run/holdfast && {mount}exec "$0" --config "$1"'
        with self.log.open("w") as out:
            self.process = subprocess.Popen(["unshare", "--mount", "sh", "-ec", script, KUBE, str(config)], stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def said(self, what: str = "") -> list[str]:
        return [line for line in self.log.read_text(errors="replace").splitlines() if what in line]

    def stop(self) -> float:
        began = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.code = self.process.wait(timeout=30)
        return time.monotonic() - began


class Api(Case):
    version, runtime = "v1", "runc"

    def setUp(self):
        super().setUp()
        if reason := api_server.why_not():
            self.skipTest(reason)
        if not eventually(lambda: not other_guards(), 60, 0.5):
            self.skipTest(f"another guard is at work on this machine: process {other_guards()[0]}")
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="hf-api-")))
        make_certificates(self.directory)
        self.cluster = Cluster(NODE)
        self.enterContext(unittest.mock.patch.object(engines, "GPU_NODES", NODES))

    def serve(self, port: int = 0) -> ApiServer:
        server = ApiServer(self.directory, self.cluster, port)
        self.addCleanup(server.stop)
        return server

    def pod(self) -> engines.Container:
        try:
            return self.enterContext(engines.kubernetes(self.version, runtime=self.runtime))
        except Unavailable as error:
            self.skipTest(str(error))

    def guard(self, mode: str = "heal"):
        self.socket = self.directory / "holdfastd.sock"
        return self.enterContext(guarding(HOLDFASTD, "--socket", str(self.socket), config=policy(mode), containers=1))

    def kube(self, port: int, options: str = "", user: str = "{token: secret}", host: str = "127.0.0.1") -> Kube:
        file = self.directory / "kubeconfig"
        file.write_text(kubeconfig(self.directory, port, user).replace("127.0.0.1", host))
        kube = Kube(self.directory, self.socket, f"{{kubeconfig: {file}, node: {NODE}, spread: 1{options}}}")
        self.addCleanup(kube.stop)
        self.assertTrue(eventually(lambda: kube.said("ready"), WAIT), kube.said())
        return kube

    def attack(self, pod: engines.Container) -> None:
        groups = [group for group in pod.cgroups() if (group / "devices.deny").exists()]
        for group in groups:
            (group / "devices.deny").write_text("c 10:229 rw")
        self.assertTrue(groups)

    def restore(self, pod: engines.Container) -> None:
        done = holdfast("grant", f"pid:{pod.pid}", "c 10:229 rw")
        self.assertEqual(done.returncode, 0, done.stderr)

    def events(self, pod: engines.Container, reason: str) -> list[dict]:
        with self.cluster.lock:
            return [event for event in self.cluster.events.values() if event["involvedObject"]["name"] == pod.name and event["reason"] == reason]

    def wait_for(self, pod: engines.Container, reason: str, kube: Kube) -> dict:
        found = eventually(lambda: self.events(pod, reason), WAIT, 0.05)
        self.assertTrue(found, f"{self.cluster.events} {kube.said()}")
        return found[0]

    def wait_for_condition(self, status: str, kube: Kube) -> dict:
        self.assertTrue(eventually(lambda: self.cluster.condition().get("status") == status, 120, 0.1), f"{self.cluster.node} {kube.said()}")
        return self.cluster.condition()


class Short(Api):
    """The part that ./test runs."""

    def test_a_loss_and_its_end_are_written_though_events_hang_at_first(self):
        pod = self.pod()
        self.guard("observe")
        server = self.serve()
        self.attack(pod)  # before: a condition True would come first, and no other one within 30 s
        self.cluster.hangs = "/events"
        kube = self.kube(server.port)
        lost = self.wait_for_condition("False", kube)
        self.assertEqual(lost["reason"], "DeviceLost")
        self.assertRegex(lost["message"], f"^1 container lacks devices: {NAMESPACE}/{pod.name}/main")
        with self.cluster.lock:
            hung = [request for request in self.cluster.requests if "/events" in request["path"]]
            self.assertTrue(hung)
            self.assertFalse(self.cluster.events)
            self.cluster.hangs = ""
        self.restore(pod)
        self.assertEqual(self.wait_for(pod, "DeviceLost", kube)["type"], "Warning")
        self.assertEqual(self.wait_for(pod, "DeviceRestored", kube)["type"], "Normal")
        self.assertEqual(self.wait_for_condition("True", kube)["reason"], "DevicesAccessible")
        self.assertFalse(kube.said("api-away"), kube.said())
        self.assertLess(kube.stop(), 5)


class Events(Api):
    def test_a_healed_loss_is_one_event_however_often_it_happens(self):
        pod = self.pod()
        self.guard()
        server = self.serve()
        kube = self.kube(server.port)
        self.assertEqual(self.wait_for_condition("True", kube)["reason"], "DevicesAccessible")
        self.attack(pod)
        event = self.wait_for(pod, "DeviceRestored", kube)
        about = event["involvedObject"]
        uid = next(part[3:] for part in str(pod.cgroups()[0]).split("/") if part.startswith("pod"))
        self.assertEqual((about["kind"], about["namespace"], about["uid"]), ("Pod", NAMESPACE, uid))
        self.assertEqual((event["type"], event["count"], event["source"]), ("Normal", 1, {"component": "holdfast-kube", "host": NODE}))
        self.assertRegex(event["message"], rf"^container main can use {FUSE} again after [0-9.]+ (µs|ms|s): its device rules were rewritten by python3 \(pid {os.getpid()}\)")
        # A storm: it becomes the count of this event, at most once a minute.
        began, before = time.monotonic(), len(self.cluster.writes())
        while time.monotonic() - began < 65:
            self.attack(pod)
            time.sleep(0.02)
        self.assertTrue(eventually(lambda: self.events(pod, "DeviceRestored")[0]["count"] > 100, WAIT, 0.1), f"{self.cluster.events} {kube.said()}")
        self.assertEqual(len(self.events(pod, "DeviceRestored")), 1)
        self.assertLessEqual(len(self.cluster.writes()) - before, 6, self.cluster.writes())
        self.assertEqual(self.cluster.condition()["status"], "True")
        self.assertEqual(len(kube.said("api-")), 1, kube.said())

    def test_a_loss_that_stays_makes_the_condition_false_and_taints_the_node(self):
        pod = self.pod()
        daemon = self.guard("observe")
        server = self.serve()
        self.cluster.node["spec"]["taints"] = [{"key": "other", "effect": "NoExecute"}]
        self.cluster.conflicts = 1
        kube = self.kube(server.port, ", taint: true")
        started = self.wait_for_condition("True", kube)
        self.attack(pod)
        event = self.wait_for(pod, "DeviceLost", kube)
        self.assertEqual(event["type"], "Warning")
        self.assertRegex(event["message"], f"^container main cannot use {FUSE}: its device rules were rewritten by .*; the policy is to observe only$")
        lost = self.wait_for_condition("False", kube)
        self.assertEqual(lost["reason"], "DeviceLost")
        self.assertRegex(lost["message"], f"^1 container lacks devices: {NAMESPACE}/{pod.name}/main(: HF-[0-9]+: | cannot use {FUSE})")
        self.assertGreater(lost["lastTransitionTime"], started["lastTransitionTime"])
        taints = lambda: [taint["key"] for taint in self.cluster.node["spec"]["taints"]]  # noqa: E731
        self.assertTrue(eventually(lambda: taints() == ["other", "holdfast.dev/device-access"], WAIT), taints())
        # A restart says nothing else meanwhile.
        self.assertLess(kube.stop(), 5)
        before = len(self.cluster.writes())
        kube = self.kube(server.port, ", taint: true")
        conditions = lambda: [write["body"]["status"]["conditions"][0]["status"] for write in self.cluster.writes()[before:] if write["path"].endswith("/status") and write["body"]]  # noqa: E731
        self.assertTrue(eventually(conditions, 120), kube.said())
        self.assertEqual((conditions()[0], taints()), ("False", ["other", "holdfast.dev/device-access"]))
        self.restore(pod)
        restored = self.wait_for(pod, "DeviceRestored", kube)
        self.assertRegex(restored["message"], "^container main can use its devices again after [0-9.]+ s$")
        self.wait_for_condition("True", kube)
        self.assertTrue(eventually(lambda: taints() == ["other"], WAIT), taints())
        daemon.stop()
        self.assertEqual(self.wait_for_condition("Unknown", kube)["reason"], "GuardAbsent")
        self.assertLess(kube.stop(), 5)

    def test_failures_of_the_server_are_survived_and_said_once(self):
        pod = self.pod()
        self.guard()
        token = self.directory / "token"
        token.write_text("first")
        self.cluster.token = "first"
        port = free_port()
        kube = self.kube(port, user=f"{{tokenFile: {token}}}")  # no server listens yet
        self.assertTrue(eventually(lambda: kube.said("api-away"), WAIT), kube.said())
        server = self.serve(port)
        self.wait_for_condition("True", kube)
        expected = ["away", "api-answers"]
        self.assertTrue(eventually(lambda: [line.split()[-1] if "answers" in line else "away" for line in kube.said("api-")] == expected), kube.said("api-"))
        # Busy, broken, slow, and another token: the event comes nevertheless, once.
        token.write_text("second")
        with self.cluster.lock:
            self.cluster.token = "second"
            self.cluster.failures = [{"status": 429, "retry_after": 1}, {"close": True}, {"status": 500}, {"garbage": True}, {"status": 409}]
        self.attack(pod)
        self.assertTrue(eventually(lambda: not self.cluster.failures, WAIT), kube.said())
        self.attack(pod)
        self.assertLessEqual(len(self.events(pod, "DeviceRestored")), 1)
        server.stop()  # a restart
        self.serve(port)
        self.assertTrue(eventually(lambda: self.cluster.writes()[-1]["authorization"] == "Bearer second", 120), kube.said())
        # A server that hangs does not keep it from ending.
        with self.cluster.lock:
            self.cluster.failures = [{"hang": 60}] * 20
        self.assertLess(kube.stop(), 5)
        self.assertEqual(kube.code, 0, kube.said())


    def test_a_resolver_that_hangs_does_not_keep_it_from_ending(self):
        self.pod()
        self.guard()
        silent = self.enterContext(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        silent.bind(("127.0.0.77", 53))
        silent.settimeout(120)
        (self.directory / "resolv.conf").write_text("nameserver 127.0.0.77\noptions timeout:30 attempts:5\n")
        kube = self.kube(443, host="api.test")
        self.assertTrue(silent.recv(4096), kube.said())
        self.assertLess(kube.stop(), 5)
        self.assertEqual(kube.code, 0, kube.said())


class Shielded(Api):
    version, runtime = "v2", "crun"

    def test_a_rewrite_behind_the_shield_is_no_loss(self):
        pod = self.pod()
        daemon = self.guard()
        if not eventually(lambda: "shielded container=" in daemon.said(), 10):
            self.skipTest("no shield on this kernel")
        kube = self.kube(self.serve().port)
        self.wait_for_condition("True", kube)
        group = os.open(next(group for group in pod.cgroups() if group.is_relative_to("/sys/fs/cgroup/unified")), os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, group)
        attack.deny(group)
        event = self.wait_for(pod, "DeviceShielded", kube)
        self.assertRegex(event["message"], f"^container main kept {FUSE} open: its device rules were rewritten by python3 ")
        self.assertEqual(self.events(pod, "DeviceLost") + self.events(pod, "DeviceRestored"), [])


class Real(Api):
    """kube-apiserver and etcd, as they are released."""

    def test_a_real_server_accepts_it(self):
        server = RealApiServer(self.directory)
        if server.missing:
            self.skipTest(server.missing)
        self.enterContext(contextlib.closing(server))
        server.start()
        server.create("/api/v1/nodes", {"kind": "Node", "metadata": {"name": NODE}})
        server.create("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": NAMESPACE}})
        pod = self.pod()
        self.guard("observe")
        file = self.directory / "kubeconfig"
        file.write_text(server.kubeconfig())
        kube = Kube(self.directory, self.socket, f"{{kubeconfig: {file}, node: {NODE}, spread: 1, taint: true}}")
        self.addCleanup(kube.stop)

        def condition() -> str:
            conditions = server.get(f"/api/v1/nodes/{NODE}")["status"].get("conditions", [])
            return next((one["status"] for one in conditions if one["type"] == "DeviceAccess"), "")

        self.assertTrue(eventually(lambda: condition() == "True", WAIT, 0.5), kube.said())
        self.attack(pod)
        listed = lambda: server.get(f"/api/v1/namespaces/{NAMESPACE}/events")["items"]  # noqa: E731
        self.assertTrue(eventually(lambda: [event["reason"] for event in listed()] == ["DeviceLost"], WAIT, 0.5), kube.said())
        self.assertTrue(eventually(lambda: condition() == "False", WAIT, 0.5), kube.said())
        tainted = lambda: server.get(f"/api/v1/nodes/{NODE}")["spec"].get("taints", [])  # noqa: E731
        self.assertTrue(eventually(lambda: "holdfast.dev/device-access" in [taint["key"] for taint in tainted()], WAIT, 0.5), kube.said())
        for _ in range(20):
            self.restore(pod)
            self.attack(pod)
            time.sleep(0.2)
        self.assertTrue(eventually(lambda: max(event["count"] for event in listed()) > 1, 120, 0.5), f"{listed()} {kube.said()}")
        server.restart()
        self.restore(pod)
        self.assertTrue(eventually(lambda: condition() == "True", 180, 0.5), kube.said())
        self.assertIn("DeviceRestored", [event["reason"] for event in listed()])
        self.assertTrue(eventually(lambda: not [taint for taint in tainted() if taint["key"].startswith("holdfast")], WAIT, 0.5))
        self.assertFalse(kube.said("api-forbidden"), kube.said())


if __name__ == "__main__":
    run_suite(verbosity=2)
