"""A machine with a stand-in GPU, in a mount namespace: NVIDIA's files of /proc and /dev, a driver, a config of holdfast, an empty /run."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator

from engines import TIMEOUT, Unavailable, View

UUID = "GPU-11111111-2222-3333-4444-555555555555"
SECOND_UUID = "GPU-22222222-2222-3333-4444-555555555555"
VERSION = "550.54.15"
UVM = 511  # its major; no driver has it, so that open gives ENXIO where it is allowed
NODES = {
    "/dev/nvidia0": (195, 0),
    "/dev/nvidiactl": (195, 255),
    "/dev/nvidia-uvm": (UVM, 0),
    "/dev/nvidia-uvm-tools": (UVM, 1),
}
SECOND_NODE = {"/dev/nvidia1": (195, 1)}
BIN = "/run/hf-e2e/bin"
RUNTIME = f"{BIN}/holdfast-runtime"
DRIVER = "/run/nvidia/driver"  # where a driver container has it
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
LIBRARY_NAMES = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1", "libnvidia-encode.so.1")
CONFIG = f"runtime:\n  driver_root: {DRIVER}\n"
PARAMETERS = "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n"
LEDGER = "/run/holdfast/ledger"


def information(uuid: str, address: str, minor: int) -> str:
    return (
        f"Model: \t\t NVIDIA A100\nIRQ: 1\nGPU UUID: \t {uuid}\nBus Location: \t {address}\n"
        f"Device Minor: \t {minor}\nGPU Excluded:\t No\n"
    )


def make_driver(directory: pathlib.Path) -> None:
    """What the files of a driver look like to a loader: the cache takes names from within the libraries."""
    libraries = directory / LIBRARIES.lstrip("/")
    libraries.mkdir(parents=True)
    (directory / "usr/bin").mkdir()
    for name in LIBRARY_NAMES:
        file = libraries / name.replace(".so.1", f".so.{VERSION}")
        command = ["cc", "-shared", "-nostdlib", f"-Wl,-soname,{name}", "-x", "c", "/dev/null", "-o", str(file)]
        subprocess.run(command, check=True, timeout=TIMEOUT)
        (libraries / name).symlink_to(file.name)
    shutil.copy("/bin/true", directory / "usr/bin/nvidia-smi")


def make_proc(directory: pathlib.Path) -> None:
    """Two GPUs; a container gets the node of the second only if it requests it."""
    for number, uuid in enumerate((UUID, SECOND_UUID)):
        address = f"0000:{65 + number}:00.0"
        unit = directory / "driver/nvidia/gpus" / address
        unit.mkdir(parents=True)
        (unit / "information").write_text(information(uuid, address, number))
    (directory / "driver/nvidia/capabilities").mkdir()
    (directory / "driver/nvidia/version").write_text(f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {VERSION}  Tue Mar  5\n")
    (directory / "driver/nvidia/params").write_text(PARAMETERS)
    characters, blocks = pathlib.Path("/proc/devices").read_text().split("\nBlock devices:")
    (directory / "devices").write_text(f"{characters.rstrip()}\n195 nvidia\n{UVM} nvidia-uvm\n\nBlock devices:{blocks}")


def lines_of(directory: pathlib.Path, programs: dict[str, str], speaker: int | None) -> list[str]:
    """A shell's lines for what is in `directory`; for any mount namespace of its own. `speaker` is seen from there, or there is none."""
    lines = ["cp -a /etc %(f)s/etc", "mount --bind %(f)s/etc /etc", "mkdir -p /etc/holdfast", "rm -rf /etc/holdfast/* /etc/cdi"]
    lines += ["cp %(f)s/config.yaml /etc/holdfast/config.yaml"]
    lines += [f"mkdir -p {BIN} {DRIVER}", f"mount --bind %(f)s/root {DRIVER}"]
    for name, path in programs.items():
        lines += [f"touch {BIN}/{name}", f"mount --bind {path} {BIN}/{name}"]
    lines += ["mount --bind %(f)s/driver /proc/driver", "mount --bind %(f)s/devices /proc/devices"]
    # A file of procfs with our text: the runtime covers only a file of procfs within a container.
    lines += [f"mount --bind /proc/{speaker}/cmdline /proc/driver/nvidia/params"] if speaker else []
    lines += [
        f"[ -e {path} ] || mknod -m 666 {path} c {major} {minor}" for path, (major, minor) in (NODES | SECOND_NODE).items()
    ]
    return [line % {"f": directory} for line in lines]


def start_speaker() -> subprocess.Popen:
    """A process whose command line is the driver's parameters."""
    process = subprocess.Popen(
        [PARAMETERS, "-c", "read word"], executable="/bin/sh", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    while not pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(PARAMETERS.encode()):
        time.sleep(0.001)
    return process


class Runs:
    """Runs commands where `inside` says."""

    def run(self, *command: str | os.PathLike, **options) -> subprocess.CompletedProcess:
        """To its end, whatever that is; into files, as a container in the background would hold a pipe open."""
        options = {"stdin": subprocess.DEVNULL, "timeout": TIMEOUT, "preexec_fn": self.before} | options
        if "input" in options:
            del options["stdin"]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            code = subprocess.run(self.inside([*map(str, command)]), stdout=out, stderr=err, check=False, **options).returncode
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(command, code, out.read(), err.read())


class Stage(Runs, View):
    """An engine's view of such a machine. Below `root` lies all that is seen in there."""

    def __init__(self, version: str, programs: dict[str, str]):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="hf-stage-", dir="/tmp"))
        self.speaker = start_speaker()
        try:
            make_driver(self.directory / "root")
            make_proc(self.directory)
            (self.directory / "config.yaml").write_text(CONFIG)
            empty = ["mount -t tmpfs -o mode=755 tmpfs /run", "mkdir /run/lock", "mount -t tmpfs -o mode=755 tmpfs /var/lib"]
            super().__init__(version, [*empty, *lines_of(self.directory, programs, self.speaker.pid)])
        except BaseException:
            self.clear()
            raise
        self.root = pathlib.Path(f"/proc/{self.holder.pid}/root")

    def path(self, path: str) -> pathlib.Path:
        return self.root / path.lstrip("/")

    def ledger(self) -> list[str]:
        directory = self.path(LEDGER)
        return sorted(os.listdir(directory)) if directory.exists() else []

    @contextlib.contextmanager
    def config(self, text: str) -> Iterator[None]:
        """Another /etc/holdfast/config.yaml for a while."""
        file = self.path("/etc/holdfast/config.yaml")
        file.write_text(text)
        try:
            yield
        finally:
            file.write_text(CONFIG)

    @contextlib.contextmanager
    def changed(self, *steps: str) -> Iterator["Branch"]:
        """The same machine with something mounted over it or taken away; that is gone afterwards."""
        lower = Branch(self, steps)
        try:
            yield lower
        finally:
            lower.close()

    def close(self) -> None:
        try:
            super().close()
        finally:
            self.clear()

    def clear(self) -> None:
        self.speaker.stdin.close()
        self.speaker.wait(timeout=TIMEOUT)
        shutil.rmtree(self.directory, ignore_errors=True)


class Branch(Runs):
    """A mount namespace made from a stage's, changed by some lines of shell."""

    def __init__(self, above: Stage, steps: tuple[str, ...]):
        self.before = above.before
        script = "\n".join([*steps, "echo ready", "exec sleep infinity"])
        command = above.inside(["unshare", "-m", "sh", "-ec", script])
        self.holder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self.holder.stdout.readline() != b"ready\n":
            raise Unavailable(f"no branch of the stage: {self.holder.communicate()[1].decode()}")

    def inside(self, command: list[str]) -> list[str]:
        return View.inside(self, command)

    def close(self) -> None:
        self.holder.kill()
        self.holder.wait(timeout=TIMEOUT)
        self.holder.stdout.close()
        self.holder.stderr.close()


@contextlib.contextmanager
def stage(version: str, programs: dict[str, str]) -> Iterator[Stage]:
    made = Stage(version, programs)
    try:
        yield made
    finally:
        made.close()
