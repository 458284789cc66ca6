"""Containers made by hand on a stage with a GPU: a bundle, a runtime and its verbs."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

import engines
from engines import SLEEP
from gpu_stage import BIN, LEDGER, RUNTIME, Branch, Stage


def usual_spec(cgroup: str) -> dict:
    """A busybox that sleeps and may open nothing but the default devices."""
    return {
        "ociVersion": "1.0.2",
        "process": {"cwd": "/", "args": [*SLEEP], "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}},
        "root": {"path": "rootfs"},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
        ],
        "linux": {
            "cgroupsPath": cgroup,
            "namespaces": [{"type": kind} for kind in ("mount", "pid", "ipc", "uts")],
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
        },
    }


class Box:
    """A bundle, and the container that is created from it."""

    def __init__(self, stage: Stage, directory: pathlib.Path, name: str = ""):
        self.stage, self.directory = stage, directory
        self.name = name or engines.unique_name("box")
        self.runtime = RUNTIME
        self.root: list[str] = []  # options before the verb
        self.place: Stage | Branch = stage
        self.cgroup = f"/{self.name}"
        self.spec = usual_spec(self.cgroup)
        self.file = directory / "config.json"
        engines.fill_rootfs(directory / "rootfs")
        stage.cgroups.add(self.cgroup)

    def ask(self, visible: str, *more: str) -> "Box":
        """Requests GPUs, as an image or the caller of an engine does."""
        self.spec["process"]["env"] += [f"NVIDIA_VISIBLE_DEVICES={visible}", *more]
        return self.write()

    def write(self) -> "Box":
        self.file.write_text(json.dumps(self.spec))
        return self

    def edited(self) -> dict:
        return json.loads(self.file.read_text())

    def call(self, *arguments: str, **options) -> subprocess.CompletedProcess:
        return self.place.run(self.runtime, *self.root, *arguments, **options)

    def ok(self, *arguments: str, **options) -> str:
        done = self.call(*arguments, **options)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(arguments)}: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def create(self, **options) -> subprocess.CompletedProcess:
        return self.call("create", "--bundle", str(self.directory), self.name, **options)

    def start(self) -> "Box":
        done = self.create()
        if done.returncode != 0:
            raise AssertionError(f"create: exit code {done.returncode}: {done.stderr.strip()}")
        self.ok("start", self.name)
        return self

    def state(self) -> dict:
        return json.loads(self.ok("state", self.name))

    @property
    def pid(self) -> int:
        return self.state()["pid"]

    def exists(self) -> bool:
        return self.call("state", self.name).returncode == 0

    def cgroups(self) -> list[pathlib.Path]:
        """As the machine's own mounts show them."""
        return [path for path in engines.cgroups_of(self.pid) if path.exists()]

    def inside(self, path: str) -> pathlib.Path:
        return pathlib.Path(f"/proc/{self.pid}/root") / path.lstrip("/")

    def opens(self, path: str) -> str:
        """ENXIO says that the cgroup lets it through, EPERM that it does not, ENOENT that there is no such node."""
        return engines.Container("box", self.stage.version, self.name, self.name, self.pid).opens(path)

    def entry(self) -> pathlib.Path:
        return self.stage.path(f"{LEDGER}/{self.name}.json")

    def rules(self) -> list[dict]:
        done = self.stage.run(f"{BIN}/holdfast", "rules", f"pid:{self.pid}", "-o", "json")
        report = json.loads(done.stdout)
        if not report["effective"]["exact"]:
            raise AssertionError(report)
        return report["effective"]["rules"]

    def delete(self) -> None:
        """Removes what is left of it, with the runtime that created it."""
        self.call("delete", "-f", self.name)


@contextlib.contextmanager
def box(stage: Stage, name: str = "") -> Iterator[Box]:
    directory = pathlib.Path(tempfile.mkdtemp(prefix="hf-box-", dir="/tmp"))
    made = Box(stage, directory, name)
    try:
        yield made
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            made.delete()
        for pid in engines.members({made.cgroup}):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        engines.remove_cgroups({made.cgroup})
        made.entry().unlink(missing_ok=True)
        shutil.rmtree(directory, ignore_errors=True)
