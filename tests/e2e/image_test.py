#!/usr/bin/env python3
"""image_test.py HOLDFAST HOLDFASTD HOLDFAST_KUBE HOLDFAST_RUNTIME: the image that tools/image makes, in real docker and containerd.

A guard in a container heals a container outside its own, and the programs in there see the host as programs on the host do.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import uuid

import attack
import engines
from engines import FUSE, GPU, GPU_CONTROL, GPU_NODES, Unavailable, View
from guarded import HOLDFASTD, eventually, other_guards, policy, remove_shields, wait_for_our_turn
from support import HOLDFAST, Case, holdfast_json, run_suite, why_not

MORE = [pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2)]
TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/image"
NAME = "localhost/holdfast:e2e"
BIN = "/opt/holdfast/bin"
FINE = {FUSE: "ok", GPU: "ENXIO", GPU_CONTROL: "ENXIO"}
SCRATCH = pathlib.Path(tempfile.mkdtemp(prefix="hf-image-"))
IMAGE = SCRATCH / "image.tar"
engines.TIMEOUT = 300  # it loads an image of tens of megabytes


def make_image(path: pathlib.Path) -> str:
    done = subprocess.run([TOOL, "--programs", SCRATCH / "programs", "--output", path, "--name", NAME], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout


def setUpModule() -> None:
    wait_for_our_turn()
    (SCRATCH / "programs").mkdir()
    for program in (pathlib.Path(HOLDFAST), pathlib.Path(HOLDFASTD), *MORE):
        shutil.copy(program, SCRATCH / "programs")
    make_image(IMAGE)


def tearDownModule() -> None:
    shutil.rmtree(SCRATCH)


@contextlib.contextmanager
def shared_view(version: str):
    """As on a host with systemd: mounts of the root directory reach those who have a copy of it."""
    machine = View(version, ["mount --make-rshared /"])
    try:
        yield machine
    finally:
        machine.close()


class Archive(unittest.TestCase):
    def test_has_the_same_bytes_when_made_again(self) -> None:
        make_image(SCRATCH / "again.tar")
        self.assertEqual(IMAGE.read_bytes(), (SCRATCH / "again.tar").read_bytes())
        print(f"the image has {IMAGE.stat().st_size / 1e6:.1f} MB", file=sys.stderr)

    def test_is_a_layout_whose_parts_have_the_digests_that_name_them(self) -> None:
        with tarfile.open(IMAGE) as tar:
            for member in tar.getmembers():
                self.assertEqual((member.mtime, member.uid, member.gid), (0, 0, 0), member.name)
                if member.name.startswith("blobs/"):
                    self.assertEqual(hashlib.sha256(tar.extractfile(member).read()).hexdigest(), member.name.rpartition("/")[2])
            index = json.loads(tar.extractfile("index.json").read())
            manifest = json.loads(tar.extractfile(f"blobs/sha256/{index['manifests'][0]['digest'][7:]}").read())
            packed = tar.extractfile(f"blobs/sha256/{manifest['layers'][0]['digest'][7:]}")
            with tarfile.open(fileobj=packed, mode="r:gz") as layer:
                names = layer.getnames()
                self.assertEqual({(member.mtime, member.uid, member.mode & 0o022) for member in layer.getmembers() if not member.issym()}, {(0, 0, 0)})
        self.assertLessEqual({f"opt/holdfast/bin/{name}" for name in ("holdfast", "holdfastd", "holdfast-kube", "holdfast-runtime")}, set(names))
        self.assertEqual([name for name in names if re.search(r"/(sh|bash|busybox)$", name)], [], "there is no shell in it")


def own_capabilities() -> list[str]:
    """The names of those that this process could give to a child; a machine may lack some of the 41."""
    bounding = int(re.search(r"CapBnd:\s*(\w+)", pathlib.Path("/proc/self/status").read_text())[1], 16)
    header = pathlib.Path("/usr/include/linux/capability.h").read_text()
    known = re.findall(r"#define CAP_(\w+)\s+(\d+)$", header, re.M)
    newer_than_docker_20 = ("PERFMON", "BPF", "CHECKPOINT_RESTORE")  # SYS_ADMIN stands for them
    return [name for name, number in known if name not in newer_than_docker_20 and bounding >> int(number) & 1]


def has_all_capabilities() -> bool:
    status, last = pathlib.Path("/proc/self/status").read_text(), int(pathlib.Path("/proc/sys/kernel/cap_last_cap").read_text())
    return int(re.search(r"CapBnd:\s*(\w+)", status)[1], 16) == (2 << last) - 1


class InEngine(Case):
    """The engine and a container in it are there for all tests of a class: loading the image takes a while."""

    def setUp(self) -> None:
        super().setUp()
        if not eventually(lambda: not other_guards(), 60, 0.5):
            self.skipTest(f"another guard is at work on this machine: process {other_guards()[0]}")
        self.addCleanup(remove_shields)
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="hf-guard-")))
        (self.directory / "config.yaml").write_text(policy() + f"journal: {{directory: {self.directory}/journal}}\nweb: {{listen: none, socket: none}}\n")

    @classmethod
    def start(cls, make, *arguments, **options) -> engines.Container:
        if reason := why_not():
            raise unittest.SkipTest(reason)
        try:
            return cls.enterClassContext(make(*arguments, **options))
        except Unavailable as error:
            raise unittest.SkipTest(str(error)) from error

    def is_ready(self, pid: int) -> bool:
        """It has written down that it runs, on the host and with the pid that the host knows it by."""
        with contextlib.suppress(OSError, json.JSONDecodeError):
            return json.loads(pathlib.Path("/run/holdfast/status.json").read_text())["pid"] == pid
        return False

    def check_healing(self, container: engines.Container) -> None:
        """Again and again, and whatever the engine itself does."""
        for _ in range(3):
            for cgroup in container.cgroups():
                for major, minor in GPU_NODES.values() if (cgroup / "devices.deny").exists() else ():
                    (cgroup / "devices.deny").write_text(f"c {major}:{minor} rw")
            for path, wanted in FINE.items():
                self.assertEqual(eventually(lambda path=path, wanted=wanted: container.opens(path) == wanted and wanted, 20, 0.05), wanted, path)
        container.update_cpus()
        self.assertEqual(eventually(lambda: container.opens() == "ENXIO", 20, 0.05), True)

    def unrelated_container(self) -> engines.Container:
        """On cgroup v2, of no engine that starts a guard here. Directly below the root cgroup there is no shield."""
        parent = engines.unique_name("parent")
        self.addCleanup(engines.remove_cgroups, {f"/{parent}"})
        try:
            return self.enterContext(engines.oci("v2", "crun", parent=parent))
        except Unavailable as error:
            self.skipTest(str(error))

    def check_shield(self, target: engines.Container) -> int:
        """Its device stays open while programs refuse it. Returns its cgroup."""
        shield = lambda: next((one["shield"] for one in holdfast_json("ps")["containers"] if one["id"] == target.id), {})  # noqa: E731
        is_on = eventually(lambda: shield().get("on"), 20, 0.2)
        if not is_on and tuple(map(int, os.uname().release.split(".")[:2])) < (5, 18):
            self.skipTest(f"no shield: {shield().get('why')}")
        self.assertTrue(is_on, shield())
        group = os.open(next(group for group in target.cgroups() if group.is_relative_to("/sys/fs/cgroup/unified")), os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, group)
        for _ in range(20):
            attack.deny(group)
            self.assertEqual(target.opens(), "ENXIO")
        return group

    def check_sight(self, container: engines.Container, seen: dict) -> None:
        """What `holdfast ps` in the guard's container says of the other container is what it says on the host."""
        ours = next(line for line in seen["containers"] if line["id"] == container.id)
        theirs = next(line for line in holdfast_json("ps")["containers"] if line["id"] == container.id)
        for key in ("name", "title", "engine", "pid", "cgroup", "bundle", "owed", "state", "findings"):
            self.assertEqual(ours[key], theirs[key], key)

    def check_records(self, container: engines.Container) -> None:
        """In the host's directory, with the writer's name."""
        every = [json.loads(line) for line in (self.directory / "journal/blame.jsonl").read_text().splitlines()]
        mine = [record for record in every if record.get("id") == container.id and record["action"] == "healed"]
        self.assertGreaterEqual(len(mine), 3)
        self.assertTrue(any("python" in json.dumps(record.get("writer", {})) for record in mine), mine)


class Docker(InEngine):
    HOST = ("--pid", "host", "--network", "none", "-v", "/:/host:rslave")

    @classmethod
    def setUpClass(cls) -> None:
        cls.container = cls.start(engines.docker, "hybrid", place=shared_view)
        cls.docker = staticmethod(cls.container.call)
        cls.docker("load", "-i", str(IMAGE))
        cls.host = (*cls.HOST, "--privileged")
        if not has_all_capabilities():  # docker would ask for those that this machine lacks as well
            cls.host = (*cls.HOST, "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined", "--device-cgroup-rule", "a *:* rwm")
            cls.host += tuple(option for name in own_capabilities() for option in ("--cap-add", name))

    def setUp(self) -> None:
        super().setUp()
        self.guard = engines.unique_name("guard").replace("hf-e2e", "hf-guard")

    def try_docker(self, *arguments: str) -> str:
        try:
            return self.docker(*arguments)
        except Unavailable as error:
            return error.output or str(error)

    def state(self, what: str) -> str:
        return self.docker("inspect", "-f", what, self.guard).strip()

    def holdfast_inside(self, *arguments: str) -> str:
        return self.docker("run", "--rm", *self.host, "--entrypoint", f"{BIN}/holdfast", NAME, *arguments)

    def test_guards_a_container_outside_its_own_until_it_is_stopped(self) -> None:
        self.docker("run", "-d", "--name", self.guard, *self.host, NAME, "--config", f"{self.directory}/config.yaml")
        self.addCleanup(self.try_docker, "rm", "-f", self.guard)
        self.assertTrue(eventually(lambda: self.is_ready(int(self.state("{{.State.Pid}}"))), 60, 0.2), self.state("{{json .State}}"))
        self.check_healing(self.container)
        self.check_sight(self.container, json.loads(self.try_docker("exec", self.guard, f"{BIN}/holdfast", "ps", "-o", "json")))
        report = json.loads(self.try_docker("exec", self.guard, f"{BIN}/holdfast", "doctor", self.container.name, "-o", "json"))
        self.assertNotIn("HF-101", [finding["code"] for finding in report["findings"]], "it is healed")
        self.assertIn("holdfastd", str(report["guard"]))
        self.check_records(self.container)
        self.docker("stop", "-t", "10", self.guard)
        self.assertEqual(self.state("{{.State.ExitCode}}"), "0")

    def test_shields_a_container_outside_its_own(self) -> None:
        """cgroup v2: the device stays open while programs refuse it, also when the guard has ended."""
        target = self.unrelated_container()
        self.docker("run", "-d", "--name", self.guard, *self.host, NAME, "--config", f"{self.directory}/config.yaml")
        self.addCleanup(self.try_docker, "rm", "-f", self.guard)
        self.assertTrue(eventually(lambda: self.is_ready(int(self.state("{{.State.Pid}}"))), 60, 0.2), self.state("{{json .State}}"))
        group = self.check_shield(target)
        self.docker("stop", "-t", "10", self.guard)
        attack.deny(group)
        self.assertEqual(target.opens(), "ENXIO")

    def test_heals_by_hand(self) -> None:
        for cgroup in self.container.cgroups():
            for major, minor in GPU_NODES.values() if (cgroup / "devices.deny").exists() else ():
                (cgroup / "devices.deny").write_text(f"c {major}:{minor} rw")
        self.assertEqual(self.container.opens(), "EPERM")
        self.addCleanup(self.try_docker, "rm", "-f", self.guard)
        said = self.try_docker("run", "--name", self.guard, *self.host, "--entrypoint", f"{BIN}/holdfast", NAME, "heal", self.container.name)
        self.check_healed(subprocess.CompletedProcess([], int(self.state("{{.State.ExitCode}}")), said, ""))
        self.assertIn("  did: ", said)
        self.assertEqual(self.container.opens(), "ENXIO")

    def test_sees_the_host_in_a_cgroup_namespace_of_its_own_too(self) -> None:
        try:
            os.close(os.open("/proc/1/ns/cgroup", os.O_RDONLY))
        except OSError as error:
            self.skipTest(f"root may not enter the namespaces of process 1 on this machine: {error}")
        inside = self.try_docker("run", "--rm", *self.host, "--cgroupns", "private", "--entrypoint", f"{BIN}/holdfast", NAME, "ps", "-o", "json")
        self.check_sight(self.container, json.loads(inside))

    def test_says_what_is_missing_to_see_the_host(self) -> None:
        self.assertRegex(self.docker("run", "--rm", "--network", "none", NAME, "--version"), r"^holdfastd \d")
        nothing = self.try_docker("run", "--rm", "--network", "none", NAME, "--check-config")
        self.assertIn("holdfastd: HOLDFAST_HOST_ROOT=/host: /host has no /proc", nothing)
        own = self.try_docker("run", "--rm", "--network", "none", "-v", "/:/host:rslave", NAME, "--check-config")
        self.assertIn("--pid=host", own)
        weak = self.try_docker("run", "--rm", *self.HOST, "--cap-drop", "ALL", NAME, "--check-config")
        self.assertIn("must be privileged", weak)

    def test_installs_the_runtime_on_the_host_and_registers_it(self) -> None:
        self.docker("run", "--rm", "--network", "none", "-e", "HOLDFAST_HOST_ROOT=", "-v", f"{self.directory}/bin:/node/bin", "--cap-drop", "ALL",
                    "--entrypoint", f"{BIN}/holdfast", NAME, "setup", "runtime", "--to", "/node/bin")  # fmt: skip
        program = self.directory / "bin/holdfast-runtime"
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        file = self.directory / "config.toml"
        file.write_text("version = 2\n")
        self.holdfast_inside("setup", "containerd", "--config", str(file), "--runtime-path", str(program))
        self.assertIn(str(program), file.read_text())
        self.holdfast_inside("setup", "containerd", "--config", str(file), "--undo")
        self.assertEqual(file.read_text(), "version = 2\n")


class Pod(InEngine):
    """By containerd's CRI, with the mounts of the DaemonSet."""

    NODE, FROM_HOST = 2, 1  # a namespace of the host's; a propagation

    @classmethod
    def setUpClass(cls) -> None:
        cls.container = cls.start(engines.kubernetes, "hybrid", place=shared_view)
        cls.container.call("image", "import", "--snapshotter", "native", str(IMAGE))

    def security(self) -> dict:
        rights = {2: 1} if has_all_capabilities() else {1: {1: own_capabilities()}}
        return rights | {3: {1: self.NODE, 2: self.NODE}}

    def mounts(self) -> list[dict]:
        """As in packaging/kubernetes/holdfast.yaml: the config lies over the host's directory, in a file system of its own."""
        (self.directory / "etc").mkdir()
        (self.directory / "token").mkdir()
        (self.directory / "token/token").write_text("secret")
        for place in ("/etc/holdfast", "/run/secrets", "/run/secrets/kubernetes.io", "/run/secrets/kubernetes.io/serviceaccount"):
            if not pathlib.Path(place).exists():  # the engine makes it, to mount something there
                self.addCleanup(engines.remove_empty, pathlib.Path(place))
        return [
            {1: "/host", 2: "/", 5: self.FROM_HOST},
            {1: "/host/etc/holdfast", 2: f"{self.directory}/etc"},
            {1: "/host/etc/holdfast/config.yaml", 2: f"{self.directory}/config.yaml", 3: 1},
            {1: "/host/run/secrets/kubernetes.io/serviceaccount", 2: f"{self.directory}/token", 3: 1},
        ]

    def test_guards_a_container_outside_its_pod_until_it_is_stopped(self) -> None:
        target = self.unrelated_container()
        cri, uid = self.container.cri, str(uuid.uuid4())
        parent = f"/kubepods/besteffort/pod{uid}"
        pod = {1: {1: "hf-guard", 2: uid, 3: "hf-guard"}, 3: str(self.directory), 8: {1: parent, 2: {1: {1: self.NODE, 2: self.NODE}}}}
        sandbox = engines.first_text(cri("RunPodSandbox", {1: pod}))
        self.addCleanup(self.remove, sandbox, parent)
        wanted = {1: {1: "guard"}, 2: {1: NAME}, 3: [f"{BIN}/holdfastd"], 7: self.mounts(), 11: "log", 15: {2: self.security()}}
        guard = engines.first_text(cri("CreateContainer", {1: sandbox, 2: wanted, 3: pod}))
        cri("StartContainer", {1: guard})
        pid = int(re.search(rf"{guard}\s+(\d+)", self.container.call("task", "list"))[1])
        self.assertTrue(eventually(lambda: self.is_ready(pid), 60, 0.2), (self.directory / "log").read_text())
        self.check_healing(self.container)
        self.check_shield(target)
        self.check_sight(self.container, json.loads(self.inside(guard, f"{BIN}/holdfast", "ps", "-o", "json")))
        self.check_records(self.container)  # its directory is in the config: it was read
        root = pathlib.Path(f"/proc/{pid}/root")
        self.assertEqual((root / "run/secrets/kubernetes.io/serviceaccount/token").read_text(), "secret")
        self.assertFalse(pathlib.Path("/run/secrets/kubernetes.io/serviceaccount/token").exists(), "the token must stay in the pod")
        cri("StopContainer", {1: guard, 2: 10})
        status = engines.decode(engines.decode(cri("ContainerStatus", {1: guard}))[1][0])
        self.assertEqual(status.get(7, [0]), [0], "it must exit with 0")

    def inside(self, guard: str, *command: str) -> str:
        return engines.decode(self.container.cri("ExecSync", {1: guard, 2: [*command], 3: 60}))[1][0].decode()

    def remove(self, sandbox: str, parent: str) -> None:
        for method in ("StopPodSandbox", "RemovePodSandbox"):
            with contextlib.suppress(Unavailable):
                self.container.cri(method, {1: sandbox})
        engines.remove_cgroups({parent})


class Podman(Case):
    def test_loads_and_runs_it(self) -> None:
        try:
            machine = self.enterContext(shared_view("hybrid"))
            podman = engines.program("podman")
        except Unavailable as error:
            self.skipTest(str(error))
        directory = self.enterContext(engines.scratch_directory())
        where = ["--root", f"{directory}/root", "--runroot", f"{directory}/runroot", "--tmpdir", f"{directory}/tmp", "--storage-driver", "vfs"]
        machine.call(podman, *where, "load", "-i", str(IMAGE))
        about = json.loads(machine.call(podman, *where, "image", "inspect", NAME))[0]
        self.assertEqual(about["Config"]["Entrypoint"], [f"{BIN}/holdfastd"])


if __name__ == "__main__":
    run_suite(verbosity=2)
