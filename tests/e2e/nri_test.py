#!/usr/bin/env python3
"""NRI with real containerds of several releases: CPUs and whole device sets arrive when a container is created.

HOLDFAST_CONTAINERDS: directories with containerd and its shim, separated by colons; without it Debian's packages are fetched.
"""

import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

from engines import IMAGE, TIMEOUT, RUNTIME_STATE, SLEEP, Server, Unavailable, cri, fetch_package, first_text, program, remove_cgroups, write_image
from gpu_stage import Stage
from guarded import HOLDFASTD, Daemon, eventually, policy
from support import HOLDFAST, run_suite, why_not

CACHE = pathlib.Path(HOLDFAST).parent / "packages"
CPUSET = pathlib.Path("/sys/fs/cgroup/cpuset")
NRI = "/run/nri/nri.sock"
CONFIG = policy() + f"cpus: {{manager: true, reserved: 0}}\nnri: {{enabled: true, socket: {NRI}}}\n"
GUARANTEED, BURSTABLE = "", "/burstable"
ONE_CPU = {1: 100000, 2: 100000, 3: 1024}  # period, quota, shares
HALF = {1: 100000, 2: 50000, 3: 512}
UVM = "/dev/nvidia-uvm"


class Pod:
    def __init__(self, engine: "Engine", qos: str, resources: dict[int, object], devices: list[str]):
        self.engine, self.uid = engine, str(uuid.uuid4())
        parent = f"/kubepods{qos}/pod{self.uid}"
        self.config = {1: {1: f"pod-{self.uid[:8]}", 2: self.uid, 3: "hf-e2e"}, 6: {1: "app", 2: "hf-e2e"}, 8: {1: parent, 2: {1: {1: 2}}}}
        engine.stage.shared_cgroups.add(parent)
        self.sandbox = first_text(cri(engine.socket, "RunPodSandbox", {1: self.config}))
        specs = [{1: node, 2: node, 3: "rw"} for node in devices]
        wanted = {1: {1: "main"}, 2: {1: IMAGE}, 3: SLEEP, 8: specs, 15: {1: resources}}
        began = time.monotonic()
        self.id = first_text(cri(engine.socket, "CreateContainer", {1: self.sandbox, 2: wanted, 3: self.config}))
        cri(engine.socket, "StartContainer", {1: self.id})
        self.took = time.monotonic() - began
        self.pid = int(re.search(rf"{self.id}\s+(\d+)", engine.ctr("task", "list"))[1])

    def cgroup(self, controller: str) -> pathlib.Path:
        for line in pathlib.Path(f"/proc/{self.pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                return pathlib.Path("/sys/fs/cgroup") / controller / path.lstrip("/")
        raise AssertionError(controller)

    def cpus(self) -> str:
        return (self.cgroup("cpuset") / "cpuset.cpus").read_text().strip()

    def spec(self) -> str:
        return (self.engine.directory / "state/io.containerd.runtime.v2.task/k8s.io" / self.id / "config.json").read_text()

    def update(self, cpus: str) -> None:
        """As kubelet's static CPU manager does: nothing but CPUs."""
        self.resize({6: cpus})

    def resize(self, resources: dict[int, object]) -> None:
        cri(self.engine.socket, "UpdateContainerResources", {1: self.id, 2: resources})

    def remove(self) -> None:
        for method in ("StopPodSandbox", "RemovePodSandbox"):
            with contextlib.suppress(Unavailable):
                cri(self.engine.socket, method, {1: self.sandbox})
        for id_ in (self.id, self.sandbox):
            shutil.rmtree(RUNTIME_STATE / "k8s.io" / id_, ignore_errors=True)


class Engine:
    """containerd of a directory, with NRI, on the stage."""

    def __init__(self, stage: Stage, programs: pathlib.Path):
        self.stage, self.programs = stage, programs
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="hf-nri-", dir="/tmp"))
        self.socket = f"{self.directory}/c.sock"
        plugin = '[plugins."io.containerd.grpc.v1.cri"'
        (self.directory / "config.toml").write_text(
            f'version = 2\nroot = "{self.directory}/root"\nstate = "{self.directory}/state"\n[grpc]\naddress = "{self.socket}"\n'
            f'{plugin}]\nsandbox_image = "{IMAGE}"\nrestrict_oom_score_adj = true\n'
            f'{plugin}.containerd]\nsnapshotter = "native"\n'
            f'{plugin}.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
            f'{plugin}.containerd.runtimes.runc.options]\nBinaryName = "{program("runc")}"\n'
            f'[plugins."io.containerd.nri.v1.nri"]\ndisable = false\nsocket_path = "{NRI}"\n'
            f'plugin_path = "{self.directory}/none"\nplugin_config_path = "{self.directory}/none"\n'
        )
        stage.call("mkdir", "-p", "/run/nri", "/run/containerd/s")
        command = ("env", f"PATH={programs}:{os.environ['PATH']}", f"{programs}/containerd", "--config", f"{self.directory}/config.toml")
        self.server = Server(stage, command, lambda: self.ctr("version"), self.directory / "log")
        local = ["--local"] if "--local" in self.ctr("image", "import", "--help") else []  # since 2.0 the server would unpack it
        self.ctr("image", "import", *local, "--snapshotter", "native", f"{write_image(self.directory)}")

    def ctr(self, *arguments: str) -> str:
        return self.stage.call(f"{self.programs}/ctr", "-a", self.socket, "-n", "k8s.io", *arguments)

    def close(self) -> None:
        self.server.stop()
        self.stage.run("sh", "-c", f"awk '{{print $2}}' /proc/self/mounts | grep -e '^{self.directory}' | sort -r | xargs -r umount -l")
        shutil.rmtree(self.directory, ignore_errors=True)


class Cases:
    """What holds with any containerd that has NRI."""

    programs: pathlib.Path

    @classmethod
    def find(cls) -> pathlib.Path:
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        if os.cpu_count() != 2 or not (CPUSET / "cpuset.cpus").exists():
            raise unittest.SkipTest("needs two CPUs, and cpuset as a v1 controller")
        try:
            cls.programs = cls.find()
            cls.stage = Stage("v1", {"holdfast": HOLDFAST, "holdfast-kube": "/bin/true", "holdfast-runtime": "/bin/true"})
            cls.addClassCleanup(cls.stage.close)
            cls.engine = Engine(cls.stage, cls.programs)
            cls.addClassCleanup(cls.engine.close)
        except Unavailable as error:
            raise unittest.SkipTest(str(error)) from None

    def setUp(self):
        self.stage.call("rm", "-rf", "/run/holdfast/cpus")
        directory = tempfile.TemporaryDirectory(prefix="hf-nri-", dir="/tmp")
        self.addCleanup(directory.cleanup)
        prefix = lambda *command: self.stage.inside([*command])  # noqa: E731
        self.daemon = Daemon(HOLDFASTD, pathlib.Path(directory.name), prefix=prefix)
        self.daemon.config.write_text(CONFIG)
        self.addCleanup(self.daemon.kill)

    def start(self, connections: int = 1):
        self.daemon.start()
        self.assertTrue(eventually(lambda: self.daemon.said().count("nri-connected") >= connections), self.daemon.said())

    def pod(self, qos=GUARANTEED, resources=ONE_CPU, devices=()) -> Pod:
        pod = Pod(self.engine, qos, resources, [*devices])
        self.addCleanup(pod.remove)
        return pod

    def pod_in_time(self, *arguments, **options) -> Pod:
        """One whose creation was answered within 50 ms: on a busy machine with sanitizers not each one is."""
        for _ in range(10):
            late = self.daemon.said().count("no answer in time")
            pod = self.pod(*arguments, **options)
            if self.daemon.said().count("no answer in time") == late:
                return pod
            pod.remove()
            time.sleep(0.5)
        raise AssertionError(f"no answer in time, ten times: {self.daemon.said()}")

    def threads(self) -> list[str]:
        names = []
        for path in pathlib.Path(f"/proc/{self.daemon.pid()}/task").glob("*/comm"):
            with contextlib.suppress(OSError):  # it has just ended
                names.append(path.read_text().strip())
        return names

    def wait_for_quota(self, pod: Pod, quota: str):
        file = pod.cgroup("cpu") / "cpu.cfs_quota_us"
        self.assertTrue(eventually(lambda: file.read_text().strip() == quota), f"{file.read_text()}: {self.daemon.said()}")

    def wait(self, pod: Pod, cpus: str):
        self.assertTrue(eventually(lambda: pod.cpus() == cpus), f"{pod.cpus()}: {self.daemon.said()}")

    def test_cpus_arrive_at_creation(self):
        self.start()
        sharing = self.pod_in_time(BURSTABLE, HALF)
        self.assertIn('"cpus":"0-1"', sharing.spec())
        owner = self.pod_in_time()
        self.assertIn('"cpus":"1"', owner.spec())  # before its first process
        self.assertEqual(owner.cpus(), "1")
        self.wait(sharing, "0")  # on a busy machine it may have been created a moment before
        self.assertEqual((owner.cgroup("cpu") / "cpu.cfs_quota_us").read_text().strip(), "-1")
        late = self.pod_in_time(BURSTABLE, HALF)
        self.assertIn('"cpus":"0"', late.spec())
        refused = self.pod_in_time()  # no CPU is left: it runs in the pool
        self.assertEqual(refused.cpus(), "0")
        owner.remove()
        self.wait(refused, "1")
        self.wait(sharing, "0")
        refused.remove()
        self.wait(sharing, "0-1")

    def test_an_update_keeps_them(self):
        self.start()
        sharing, owner = self.pod_in_time(BURSTABLE, HALF), self.pod_in_time()
        for _ in range(5):
            owner.update("0-1")
            sharing.update("0-1")
            self.wait(owner, "1"), self.wait(sharing, "0")  # on a busy machine an answer may come too late, and is made up for
        self.wait_for_quota(owner, "-1")

    def test_a_resize_in_place(self):
        self.start()
        pod = self.pod()
        self.wait(pod, "1")
        pod.resize(HALF)
        self.wait(pod, "0-1")
        self.wait_for_quota(pod, "50000")
        pod.resize(ONE_CPU)
        self.wait(pod, "1")
        self.daemon.kill()
        self.daemon.log.unlink()
        self.start()  # the engine knows what it has now, its bundle does not
        self.wait(pod, "1")

    def test_cpus_of_others_are_left_alone(self):
        """Of its creator here; another NRI plugin that was asked before looks the same. Two plugins that want CPUs are refused."""
        self.start()
        pod = self.pod(GUARANTEED, ONE_CPU | {6: "0"})
        self.assertIn('"cpus":"0"', pod.spec())
        self.assertTrue(eventually(lambda: "another NRI plugin, gives it the CPUs 0" in self.daemon.said()), self.daemon.said())
        for restarts in (False, True):
            if restarts:  # the engine does not tell by whom they were given
                self.daemon.kill()
                self.daemon.log.unlink()
                self.start()
            owner = self.pod()
            self.wait(owner, "1")
            pod.resize(ONE_CPU | {6: "0"})
            self.assertEqual((pod.cpus(), owner.cpus()), ("0", "1"))
            owner.remove()

    def test_a_half_set_is_whole_before_the_start(self):
        self.start()
        pod = self.pod_in_time(BURSTABLE, HALF, devices=["/dev/nvidia0", "/dev/nvidiactl"])
        self.assertIn(UVM, pod.spec())
        self.assertTrue(pathlib.Path(f"/proc/{pod.pid}/root{UVM}").is_char_device())
        numbers = os.stat(f"/proc/{pod.pid}/root{UVM}").st_rdev
        allowed = (pod.cgroup("devices") / "devices.list").read_text().splitlines()
        self.assertIn(f"c {os.major(numbers)}:{os.minor(numbers)} rw", [line.rstrip("m") for line in allowed])
        self.assertIn("nri-completed", self.daemon.said())
        pod.update("0-1")
        self.assertEqual((pod.cgroup("devices") / "devices.list").read_text().splitlines(), allowed)

    def test_an_answer_that_comes_too_late_is_none(self):
        self.start()
        path = pathlib.Path(f"/proc/{self.daemon.pid()}/root/run/holdfast/cpus/lock")
        self.assertTrue(eventually(path.exists))
        with open(path, "r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the manager waits for it, and the engine for the manager
            pods = [self.pod() for _ in range(2)]
        self.assertIn("nri-passed", self.daemon.said())
        self.assertLess(max(pod.took for pod in pods), 4)
        self.assertTrue(eventually(lambda: sorted(pod.cpus() for pod in pods) == ["0", "1"]), self.daemon.said())

    def test_dead_or_stopped_it_delays_nothing_for_long(self):
        self.start()
        usual = max(self.pod(BURSTABLE, HALF).took for _ in range(3))
        self.daemon.tell(signal.SIGSTOP)
        stopped = self.pod(BURSTABLE, HALF)
        self.assertLess(stopped.took, usual + 6)  # the engine's own timeout is 2 s, and this machine may be busy
        again = min(self.pod(BURSTABLE, HALF).took for _ in range(5))  # the engine has given us up
        self.assertLess(again, usual + 1.5)
        self.daemon.tell(signal.SIGCONT)
        owner = self.pod()
        self.wait(owner, "1")
        self.daemon.kill()
        dead = self.pod()
        self.assertLess(dead.took, usual + 6)
        self.assertEqual(dead.cpus(), "0-1")
        self.daemon.log.unlink()
        self.start()
        self.wait(dead, "0")  # adopted: no CPU is left for it
        self.assertEqual(owner.cpus(), "1")
        owner.remove()
        self.wait(dead, "1")

    def test_it_is_switched_on_and_off_while_the_guard_runs(self):
        self.daemon.config.write_text(CONFIG.replace("enabled: true", "enabled: false"))
        self.daemon.start()
        self.daemon.config.write_text(CONFIG)
        self.daemon.tell(signal.SIGHUP)
        self.assertTrue(eventually(lambda: "nri-connected" in self.daemon.said()), self.daemon.said())
        owner = self.pod()
        self.wait(owner, "1")
        self.daemon.config.write_text(CONFIG.replace("enabled: true", "enabled: false"))
        self.daemon.tell(signal.SIGHUP)
        self.assertTrue(eventually(lambda: "hf-nri" not in self.threads()), self.daemon.said())
        self.assertEqual(owner.cpus(), "1")

    def test_the_engine_restarts(self):
        self.start()
        owner = self.pod()
        self.engine.server.restart()
        self.assertTrue(eventually(lambda: self.daemon.said().count("nri-connected") >= 2), self.daemon.said())
        self.wait(owner, "1")
        self.assertEqual(self.pod_in_time().cpus(), "0")

    def test_pods_come_and_go(self):
        self.start()
        sharing = self.pod(BURSTABLE, HALF)
        for _ in range(10):
            owner = self.pod()
            self.wait(owner, "1"), self.wait(sharing, "0")
            owner.remove()
            self.wait(sharing, "0-1")


def unpacked(suite: str) -> pathlib.Path:
    return fetch_package("containerd", suite, CACHE) / "usr/bin"


class WithDebian13(Cases, unittest.TestCase):
    """containerd 1.7."""

    @classmethod
    def find(cls):
        given = [path for path in os.environ.get("HOLDFAST_CONTAINERDS", "").split(":") if path]
        return pathlib.Path(given[0]) if given else unpacked("trixie")


class WithDebianUnstable(Cases, unittest.TestCase):
    """The newest that Debian has."""

    @classmethod
    def find(cls):
        given = [path for path in os.environ.get("HOLDFAST_CONTAINERDS", "").split(":") if path]
        if len(given) == 1:
            raise Unavailable("HOLDFAST_CONTAINERDS names one only")
        return pathlib.Path(given[1]) if given else unpacked("sid")


if __name__ == "__main__":
    if reason := why_not():
        print(reason)
        sys.exit(77)
    run_suite(verbosity=2)
