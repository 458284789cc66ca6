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
    """A busybox that sleeps and may open nothing but the usual."""
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
    """A bundle, and the container that is made of it."""

    def __init__(self, stage: Stage, folder: pathlib.Path, name: str = ""):
        self.stage, self.folder = stage, folder
        self.name = name or engines.unique_name("box")
        self.runtime = RUNTIME
        self.root: list[str] = []  # words before the verb
        self.seat: Stage | Branch = stage
        self.cgroup = f"/{self.name}"
        self.spec = usual_spec(self.cgroup)
        self.file = folder / "config.json"
        engines.fill_rootfs(folder / "rootfs")
        stage.cgroups.add(self.cgroup)

    def ask(self, visible: str, *more: str) -> "Box":
        """For GPUs, as an image or whoever starts it does."""
        self.spec["process"]["env"] += [f"NVIDIA_VISIBLE_DEVICES={visible}", *more]
        return self.write()

    def write(self) -> "Box":
        self.file.write_text(json.dumps(self.spec))
        return self

    def edited(self) -> dict:
        return json.loads(self.file.read_text())

    def call(self, *words: str, **options) -> subprocess.CompletedProcess:
        return self.seat.run(self.runtime, *self.root, *words, **options)

    def ok(self, *words: str, **options) -> str:
        done = self.call(*words, **options)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def create(self, **options) -> subprocess.CompletedProcess:
        return self.call("create", "--bundle", str(self.folder), self.name, **options)

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
        """Whatever is left of it, by whatever runtime made it."""
        self.call("delete", "-f", self.name)


@contextlib.contextmanager
def box(stage: Stage, name: str = "") -> Iterator[Box]:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hf-box-", dir="/tmp"))
    made = Box(stage, folder, name)
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
        shutil.rmtree(folder, ignore_errors=True)
