#!/usr/bin/env python3
"""Real containers of runc and crun, on cgroup v1 and v2: seen, understood, repaired while they run."""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import tempfile
import time
import unittest
import uuid

import engines
from support import V1, V2, Case, holdfast, holdfast_json, remove_cgroup, run_suite, which


def bundle_in(directory: pathlib.Path, name: str) -> pathlib.Path:
    rootfs = directory / "rootfs"
    for entry in ("bin", "dev", "proc", "sys", "tmp"):
        (rootfs / entry).mkdir(parents=True)
    shutil.copy(which("busybox"), rootfs / "bin/busybox")
    config = {
        "ociVersion": "1.0.2",
        "process": {
            "cwd": "/",
            "args": ["/bin/busybox", "sleep", "300"],
            "env": ["PATH=/bin"],
            "user": {"uid": 0, "gid": 0},
            "capabilities": {set: ["CAP_MKNOD"] for set in ("bounding", "effective", "permitted")},
        },
        "root": {"path": "rootfs"},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "linux": {
            "cgroupsPath": f"/{name}",
            "namespaces": [{"type": kind} for kind in ("mount", "pid", "ipc", "uts")],
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
        },
    }
    (directory / "config.json").write_text(json.dumps(config))
    subprocess.run(["mknod", rootfs / "gpu", "c", "195", "0"], check=True)
    return directory


class Container:
    """A running container; `prefix` puts the runtime into a mount namespace with the cgroup version it is to see."""

    def __init__(self, runtime: str, prefix: str, directory: pathlib.Path, name: str):
        self.runtime, self.prefix, self.directory, self.name = runtime, prefix, directory, name
        self.call("run", "-d", "--bundle", str(directory), name)
        self.pid = json.loads(self.call("state", name))["pid"]

    def call(self, *arguments: str) -> str:
        command = " ".join([self.runtime, "--root", str(self.directory / "state"), *arguments])
        # Into files: a container that goes on in the background would hold a pipe open.
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            shell = f"{self.prefix}; exec {command} </dev/null"
            done = subprocess.run(["unshare", "-m", "sh", "-ec", shell], stdout=out, stderr=err, timeout=60, check=False)
            out.seek(0)
            err.seek(0)
            if done.returncode != 0:
                raise RuntimeError(f"{command}: {err.read().strip()}")
            return out.read()

    def opens_gpu(self) -> str:
        """From inside the container: ENXIO says that the cgroup lets it through, EPERM that it does not."""
        program = (
            "import errno,os,sys\n"
            "for path in sys.argv[3:]: open(path+'/cgroup.procs','w').write('0')\n"
            "root=os.open('/proc/%s/root'%sys.argv[1],os.O_RDONLY)\n"
            "try: os.open('gpu',os.O_RDWR,dir_fd=root); print('ok')\n"
            "except OSError as error: print(errno.errorcode[error.errno])\n"
        )
        cgroups = [str(mount / self.name) for mount in (V1, V2) if (mount / self.name).exists()]
        command = ["python3", "-c", program, str(self.pid), "-", *cgroups]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()


V2_ONLY = "mount -t cgroup2 none /sys/fs/cgroup"
V1_ONLY = "umount /sys/fs/cgroup/unified"


@contextlib.contextmanager
def running(runtime: str, prefix: str):
    name = f"hf-e2e-{runtime}-{os.getpid()}-{time.monotonic_ns()}"
    with tempfile.TemporaryDirectory(prefix="hf-e2e-") as directory:
        container = None
        try:
            container = Container(which(runtime), prefix, bundle_in(pathlib.Path(directory), name), name)
            yield container
        finally:
            with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
                if container:
                    container.call("delete", "-f", name)
            for mount in pathlib.Path("/sys/fs/cgroup").iterdir():
                remove_cgroup(mount / name)


@contextlib.contextmanager
def running_in_pod(uid: str, pod: str, name: str):
    """A container of runc in the cgroup of a pod, with names as containerd notes them: its id and the pid of its first process."""
    id, runc = secrets.token_hex(32), ("runc", "--root", "/run/runc")
    with engines.scratch_directory() as directory, engines.view("v1") as machine:
        cgroup = f"/kubepods/pod{uid}/{id}"
        engines.write_bundle(directory, cgroup, False)
        spec = json.loads((directory / "config.json").read_text())
        prefix = "io.kubernetes.cri"
        spec["annotations"] = {f"{prefix}.container-type": "container", f"{prefix}.container-name": name, f"{prefix}.sandbox-name": pod, f"{prefix}.sandbox-namespace": "hf-e2e"}
        (directory / "config.json").write_text(json.dumps(spec))
        machine.cgroups.add(cgroup)
        with engines.cleanup(lambda: machine.call(*runc, "delete", "-f", id)):
            machine.call(*runc, "run", "-d", "--bundle", str(directory), id)
            yield id, json.loads(machine.call(*runc, "state", id))["pid"]


def write_journal(directory: str, *records: dict) -> str:
    usual = {"version": 1, "number": 1, "at": "2026-11-15T05:14:08.123Z", "kind": "attach", "hierarchy": "v2", "cgroup": "/x", "writer": {"pid": 1}, "action": "none"}
    (pathlib.Path(directory) / "blame.jsonl").write_text("".join(json.dumps(usual | one) + "\n" for one in records))
    return directory


class Pods(Case):
    """A pod of two containers, by every name that it and they have."""

    def setUp(self):
        super().setUp()
        try:
            self.uid, self.pod = str(uuid.uuid4()), f"train-{os.getpid()}"
            self.main, self.pid = self.enterContext(running_in_pod(self.uid, self.pod, "main"))
            self.sidecar, _ = self.enterContext(running_in_pod(self.uid, self.pod, "sidecar"))
        except engines.Unavailable as error:
            self.skipTest(str(error))
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix="hf-e2e-"))

    def ids(self, name: str) -> list[str]:
        done = holdfast("blame", name, "--journal", self.directory, "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [record["id"] for record in json.loads(done.stdout)["records"]]

    def test_the_name_of_a_pod_is_all_its_containers(self):
        for name in (self.pod, f"hf-e2e/{self.pod}"):
            self.assertEqual(holdfast_json("doctor", name)["containers"], 2, name)
            self.assertEqual(len(holdfast_json("heal", name, "--dry-run")["not_owed"]), 2, name)
            self.refused(2, "may be any of", "explain", name)
            self.assertEqual(self.ids(name), [], "no record is no mistake")
        self.assertEqual(holdfast_json("doctor", f"hf-e2e/{self.pod}/main")["containers"], 1)
        self.refused(2, "no container", "blame", f"other/{self.pod}", "--journal", self.directory)

    def test_blame_knows_containers_by_every_name(self):
        place = {"namespace": "hf-e2e"}
        write_journal(
            self.directory,
            place | {"id": self.main, "container": f"{self.pod}/main"},
            place | {"id": self.sidecar, "container": f"{self.pod}/sidecar"},
            {"namespace": "other", "id": "7" * 64, "container": f"{self.pod}/main"},
        )
        for name in (f"hf-e2e/{self.pod}/main", f"{self.uid}/main", f"pid:{self.pid}", self.main, self.main[:20]):
            self.assertEqual(self.ids(name), [self.main], name)
        self.assertEqual(self.ids(f"hf-e2e/{self.pod}"), [self.main, self.sidecar])
        self.assertEqual(self.ids(f"{self.pod}/main"), [self.main, "7" * 64], "in every namespace")
        self.refused(2, f"no container 'other/{self.pod}x'", "blame", f"other/{self.pod}x", "--journal", self.directory)
        self.refused(2, "pid:99999999", "watch", "pid:99999999", "--journal", self.directory)


class Containers(Case):
    def setUp(self):
        super().setUp()
        for program in ("runc", "crun", "busybox"):
            if not which(program):
                self.skipTest(f"needs {program}")

    def start(self, runtime: str, prefix: str):
        try:
            return self.enterContext(running(runtime, prefix))
        except RuntimeError as error:
            self.skipTest(f"{runtime} cannot start here: {error}")

    def check(self, runtime: str, prefix: str, version: str):
        container = self.start(runtime, prefix)
        target = f"pid:{container.pid}"
        report = holdfast_json("rules", target)
        own = [gate for gate in report["gates"] if gate["own"] and gate["hierarchy"] == version]
        self.assertEqual(len(own), 1, report)
        if version == "v2":
            self.assertEqual(own[0]["owner"], runtime)
        self.assertTrue(report["effective"]["exact"])
        self.assertIn({"type": "c", "major": 1, "minor": 3, "access": "rwm"}, report["effective"]["rules"])
        self.assertEqual(container.opens_gpu(), "EPERM")
        denied = holdfast("rules", target, "--ask", "c:195:0:rw")
        self.assertEqual(denied.returncode, 1)
        self.assertIn(container.name, denied.stdout)

        self.ok("grant", target, "c 195:0 rw")
        self.assertEqual(container.opens_gpu(), "ENXIO")
        self.ok("rules", target, "--ask", "c:195:0:rw", "--ask", "c:1:3:rwm", "--ask", "c:5:0:rw")
        return container, target

    def test_runc_v1(self):
        self.check("runc", V1_ONLY, "v1")

    def test_runc_v2(self):
        container, _ = self.check("runc", V2_ONLY, "v2")
        self.assertIn(container.name, self.ok("complete", "explain", container.name[:-2]), "for the shells")

    def test_crun_v1(self):
        self.check("crun", V1_ONLY, "v1")

    def test_crun_v2(self):
        self.check("crun", V2_ONLY, "v2")

    def test_an_update_that_names_devices_takes_the_grant_and_we_give_it_back(self):
        container, target = self.check("crun", V1_ONLY, "v1")
        resources = container.directory / "resources.json"
        resources.write_text(json.dumps({"devices": [{"allow": False, "access": "rwm"}]}))
        container.call("update", "-r", str(resources), container.name)
        self.assertEqual(container.opens_gpu(), "EPERM")
        lost = holdfast("rules", target, "--ask", "c:195:0:rw")
        self.assertEqual(lost.returncode, 1)
        self.ok("grant", target, "c 195:0 rw")
        self.assertEqual(container.opens_gpu(), "ENXIO")


if __name__ == "__main__":
    run_suite(verbosity=1)
