#!/usr/bin/env python3
"""Virtual machines with stock Debian kernels under qemu, without KVM: each runs a script as root, with a given cgroup layout.

usage: machine.py [--kernel 6.1|6.12|newest|PATH] [--layout v2|v1|hybrid] [--file GUEST=HOST]… SCRIPT; exits as the script does.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from engines import Unavailable, apt_of, download_package, program, scratch_directory  # noqa: E402

SUITES = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie", "newest": "sid"}
LAYOUTS = {"v2": "cgroup_no_v1=all", "v1": "", "hybrid": ""}
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "holdfast/kernels"
# mitigations: they cost time under emulation and are not tested. panic: the machine ends instead of hanging.
COMMAND_LINE = "console=ttyS0 loglevel=4 panic=-1 rdinit=/init mitigations=off no_timer_check"
BOOT = 60  # seconds, for a kernel to start and end; it normally needs seven
Content = pathlib.Path | str | bytes


class Crashed(RuntimeError):
    """The machine ended, or was ended, before the script did; the text is the end of its console."""


# ---- Kernels ---------------------------------------------------------------------------------------------------------


def cloud_packages(options: list[str]) -> list[str]:
    """The packages of the newest cloud kernel of a release: linux-image-… only up to Debian 13, and linux-binary-… after it."""
    command = ["apt-cache", *options, "depends", "--recurse", "--important", "linux-image-cloud-amd64"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    return sorted(set(re.findall(r"^linux-(?:image|binary)-\d\S*-cloud-amd64$", listed, re.M)))


def fetch_kernel(kernel: str) -> pathlib.Path:
    """The kernel of that Debian release, downloaded once; for a newer one, remove its directory from the cache."""
    if os.sep in kernel:
        return pathlib.Path(kernel)
    if kernel not in SUITES:
        raise ValueError(f"no kernel {kernel}: there are {', '.join(SUITES)}, or a path")
    target = CACHE / kernel
    if not target.exists():
        with scratch_directory() as directory:
            options = apt_of(SUITES[kernel], directory)
            for package in cloud_packages(options):
                download_package(package, options, directory)
            unpacked = directory / "unpacked"
            found = [*unpacked.glob("boot/vmlinuz-*"), *unpacked.glob("usr/lib/modules/*/vmlinuz")]
            if not found:
                raise Unavailable(f"linux-image-cloud-amd64 of {SUITES[kernel]} cannot be downloaded")
            keep(found[0], target)
    return next(target.iterdir())


def keep(file: pathlib.Path, directory: pathlib.Path) -> None:
    """Stores it as the only file of a directory that is created atomically; the file name has the kernel's release."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    temporary = pathlib.Path(tempfile.mkdtemp(dir=directory.parent))
    shutil.copy(file, temporary / (file.name if file.name != "vmlinuz" else f"vmlinuz-{file.parent.name}"))
    try:
        temporary.rename(directory)
    except OSError:  # Another process was faster.
        shutil.rmtree(temporary)


# ---- The root image --------------------------------------------------------------------------------------------------


def libraries(path: pathlib.Path) -> list[pathlib.Path]:
    """The libraries that a program of this host is linked with, including its interpreter."""
    with path.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return []
    said = subprocess.run(["ldd", path], capture_output=True, text=True, timeout=60, check=False).stdout
    if missing := re.findall(r"(\S+) => not found", said):
        raise Unavailable(f"{path} needs {', '.join(missing)}")
    return [pathlib.Path(found) for found in re.findall(r"(?:=> |^\s*)(/\S+) \(", said, re.M)]


class Image:
    """An initramfs: maps paths in the virtual machine to mode and content. Directories are added automatically."""

    def __init__(self) -> None:
        self.entries: dict[str, tuple[int, bytes]] = {}

    def add(self, path: str, content: Content) -> None:
        """Adds a file or a whole directory of this host, with the libraries of programs; or a text, which may be executed."""
        if isinstance(content, str | bytes):
            text = content.encode() if isinstance(content, str) else content
            self.put(path, stat.S_IFREG | 0o755, text)
        elif content.is_dir():
            for below in content.rglob("*"):
                if not below.is_dir():
                    self.add(f"{path}/{below.relative_to(content)}", below)
        else:
            self.put(path, content.stat().st_mode, content.read_bytes())
            for library in libraries(content):
                self.put(str(library), stat.S_IFREG | 0o755, library.read_bytes())

    def link(self, path: str, target: str) -> None:
        self.put(path, stat.S_IFLNK | 0o777, target.encode())

    def put(self, path: str, mode: int, content: bytes) -> None:
        name = path.strip("/")
        for directory in reversed(pathlib.PurePath(name).parents[:-1]):
            self.entries.setdefault(str(directory), (stat.S_IFDIR | 0o755, b""))
        self.entries[name] = (mode, content)

    def write(self, target: pathlib.Path) -> None:
        """Kernel: Documentation/driver-api/early-userspace/buffer-format.rst, the newc format."""
        with target.open("wb") as file:
            for number, (name, (mode, content)) in enumerate([*self.entries.items(), ("TRAILER!!!", (0, b""))], 1):
                encoded = name.encode() + b"\0"
                fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0]
                head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
                file.write(head + b"\0" * (-len(head) % 4) + content + b"\0" * (-len(content) % 4))


def base_image() -> Image:
    image = Image()
    busybox = program("busybox")
    image.add("/bin/busybox", pathlib.Path(busybox))
    for name in subprocess.run([busybox, "--list"], capture_output=True, text=True, timeout=60, check=True).stdout.split():
        if name != "busybox":
            image.link(f"/bin/{name}", "busybox")
    image.add("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
    image.add("/etc/group", "root:x:0:\n")
    image.add("/init", HERE / "init")
    return image


# ---- The machine -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def ended_with_us(command: list[str]) -> Iterator[subprocess.Popen]:
    """A process that never outlives the caller."""
    process = subprocess.Popen(
        ["nice", "-n", "10", program("setpriv"), "--pdeathsig", "KILL", "--", *command],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


class Machine:
    """Boots again for each script. `append` goes to the kernel's command line; `limit` is the script's, in seconds."""

    def __init__(self, kernel: str = "6.1", layout: str = "v2", *, limit: int = 120, memory: int = 1024, append: str = ""):
        if os.uname().machine != "x86_64":
            raise Unavailable("needs an x86_64 machine")
        if layout not in LAYOUTS:
            raise ValueError(f"no layout {layout}: there are {', '.join(LAYOUTS)}")
        try:
            self.qemu = program("qemu-system-x86_64")
        except Unavailable as error:
            raise Unavailable(f"{error}: apt-get install qemu-system-x86") from None
        self.kernel = fetch_kernel(kernel)
        self.layout, self.limit, self.memory = layout, limit, memory
        self.append = f"{COMMAND_LINE} {LAYOUTS[layout]} {append}"
        self.uptime = 0.0  # of the last run, seconds from the kernel's start to the end of the script

    def run(self, script: str, files: dict[str, Content] | None = None) -> tuple[int, str]:
        """The script's exit status and output. It runs in /root, by busybox's sh, which prefers its own applets
        to programs of the same name unless those are called by path; a relative path in `files` is below /root.
        After its limit it is terminated, and the status is 143."""
        with scratch_directory() as directory:
            image = base_image()
            for path, content in (files or {}).items():
                image.add(os.path.join("/root", path), content)
            image.add("/root/script", script)
            image.add("/etc/machine", f"layout={self.layout} limit={self.limit}\n")
            image.write(directory / "image")
            return self.boot(directory)

    def boot(self, directory: pathlib.Path) -> tuple[int, str]:
        ports = [directory / name for name in ("console", "output", "status")]
        # la57: newer kernels do not start with five levels of page tables here. cx16: this emulation leaves wrong values in the flags
        # after cmpxchg16b, and a kernel that saves and restores them then dies at random (qemu 7.2 with 6.12).
        command = [self.qemu, "-accel", "tcg,thread=multi", "-cpu", "max,la57=off,cx16=off", "-smp", "2", "-m", str(self.memory)]
        command += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        command += [argument for port in ports for argument in ("-serial", f"file:{port}")]
        command += ["-kernel", str(self.kernel), "-initrd", str(directory / "image"), "-append", self.append]
        said = ""
        with ended_with_us(command) as process, contextlib.suppress(subprocess.TimeoutExpired):
            said = process.communicate(timeout=self.limit + BOOT)[1]
        console, output, status = (port.read_text(errors="replace") if port.exists() else "" for port in ports)
        if not status.endswith("\n"):
            raise Crashed(f"{self.kernel.name} ended before its script: {said}{console[-4000:]}\noutput of the script: {output[-4000:]}")
        code, uptime = status.split()
        self.uptime = float(uptime)
        return int(code), output


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="6.1", help=f"{', '.join(SUITES)}, or the path of one (default: 6.1)")
    parser.add_argument("--layout", default="v2", choices=LAYOUTS, help="of the cgroups (default: v2)")
    parser.add_argument("--limit", default=120, type=int, help="seconds for the script (default: 120)")
    parser.add_argument("--append", default="", help="options for the kernel's command line")
    parser.add_argument("--file", default=[], action="append", metavar="GUEST=HOST", help="a file, program or directory to copy into the machine")
    parser.add_argument("script", type=pathlib.Path)
    options = parser.parse_args()
    files = {guest: pathlib.Path(host) for guest, _, host in (entry.partition("=") for entry in options.file)}
    try:
        machine = Machine(options.kernel, options.layout, limit=options.limit, append=options.append)
        status, output = machine.run(options.script.read_text(), files)
    except (Unavailable, Crashed, ValueError) as error:
        print(f"machine: {error}", file=sys.stderr)
        return 2
    print(output, end="")
    return status


if __name__ == "__main__":
    sys.exit(main())
