"""Helpers that three or more attack scripts share and the end-to-end tests do not have."""

import base64
import contextlib
import dataclasses
import http.client
import json
import pathlib
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from support import free_port, remove_cgroup  # takes the first argument: holdfast
from guarded import HOLDFASTD, Daemon, Plain, ledger_entry, policy  # takes the second one
import engines
import guard_test

# The third argument.
SHIM = str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 and "/" in sys.argv[1] else "holdfast-runtime"
NOBODY = 65534  # the uid and gid of attackers without any privilege


# Modules are imported first: only root may be able to read the interpreter's directory.
DROP = (
    "import ctypes, encodings.idna, encodings.latin_1, errno, json, mmap, os, select, signal, socket, stat, struct\n"
    "import sys, threading, time\n"
    f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); os.chdir('/')\n"
)


def start_as_nobody(script: str, *arguments: str, **options) -> subprocess.Popen:
    """A Python script in a process without any privilege; the modules of DROP are imported."""
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True} | options
    return subprocess.Popen([sys.executable, "-c", DROP + script, *arguments], **options)


def run_as_nobody(script: str, *arguments: str) -> str:
    """The output of the script, which must end by itself."""
    process = start_as_nobody(script, *arguments, stderr=subprocess.STDOUT)
    try:
        return process.communicate(timeout=60)[0]
    finally:
        process.kill()
        process.wait()


# ---- holdfastd with its HTTP server -------------------------------------------------------------------------------


class Served(Daemon):
    """A holdfastd that serves HTTP on a free port and on a unix socket, in a directory that every user may enter."""

    def __init__(self, directory: pathlib.Path, *options: str, before: tuple[str, ...] = (), port: int = 0):
        self.port, self.socket = port or free_port(), directory / "holdfastd.sock"
        prefix = lambda *command: [*before, *self.with_addresses(command)]
        super().__init__(HOLDFASTD, directory, *options, prefix=prefix)
        self.is_direct = True  # The programs of `before` do not fork.
        directory.chmod(0o755)

    def with_addresses(self, command: tuple[str, ...]) -> list[str]:
        addresses = {"--listen": f"127.0.0.1:{self.port}", "--socket": str(self.socket)}
        return [addresses.get(option, argument) for option, argument in zip(("", *command), command)]


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def connect(place: int | pathlib.Path, seconds: float = 30) -> socket.socket:
    """To a port on loopback or to a unix socket."""
    if isinstance(place, int):
        return socket.create_connection(("127.0.0.1", place), timeout=seconds)
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(seconds)
    try:
        client.connect(str(place))
    except OSError:
        client.close()
        raise
    return client


def ask(
    place: int | pathlib.Path, path: str, headers: dict[str, str] | None = None, method: str = "GET",
    seconds: float = 30,
) -> Answer:  # fmt: skip
    """One request; the Host header is the default one if `headers` has none."""
    headers = headers or {}
    client = http.client.HTTPConnection("127.0.0.1", place if isinstance(place, int) else 80, timeout=seconds)
    client.sock = connect(place, seconds)
    try:
        client.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            client.putheader(name, value)
        client.endheaders()
        reply = client.getresponse()
        return Answer(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())
    finally:
        client.close()


class ServedCase(guard_test.Guarded):
    """Attacks on a running holdfastd; a container of this test shows that it goes on healing."""

    def container(self, hierarchy: pathlib.Path, name: str = "") -> Plain:
        """Owed three devices by the ledger, and it has them."""
        name = name or engines.unique_name("plain")
        container = Plain(hierarchy, name, engines.GPU_NODES)
        self.addCleanup(remove_cgroup, container.cgroup)
        self.addCleanup(container.close)
        self.enterContext(ledger_entry(name, engines.GPU_NODES, cgroup=f"/{name}"))
        container.restrict()
        return container

    def directory(self) -> pathlib.Path:
        return pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="hf-attack-")))

    def served(self, *options: str, config: str = "", **more) -> Served:
        """Not started yet."""
        daemon = Served(self.directory(), *options, **more)
        daemon.config.write_text(config or policy())
        self.addCleanup(daemon.kill)
        return daemon

    def take(self, container: Plain, mark: int = 0) -> None:
        done = container.attack(mark)
        self.assertEqual(done.returncode, 0, done.stderr)


# ---- Containers of holdfast-runtime on a stage with a GPU -----------------------------------------------------------

import os
import stat
import unittest

import gpu_stage
import runtime_test
from boxes import Box
from support import V1, V2, Case, which

runtime_test.PROGRAMS["holdfast-runtime"] = SHIM
CRUN_STARTS: set[str] = set()  # the cgroup versions on which crun has started
SITE_DEVICE = "site.test/data=secrets"  # a CDI device without device nodes


class RuntimeCase(runtime_test.Staged):
    """A hostile image or bundle, and holdfast-runtime with runc or crun. No guard is involved or waited for."""

    check_files = runtime_test.Delivered.check_files

    def setUp(self) -> None:
        Case.setUp(self)
        for name in ("runc", "busybox", "cc", "nsenter", "ldconfig"):
            if not which(name):
                self.skipTest(f"needs {name}")
        unittest.addModuleCleanup(runtime_test.tearDownModule)  # It closes the stages.

    def need_crun(self, version: str) -> None:
        if version not in CRUN_STARTS:
            super().need_crun(version)
            CRUN_STARTS.add(version)

    def image(self, version: str = "v1", runtime: str = "runc", has_cache: bool = True) -> Box:
        """A container that asks for a GPU; the attacker fills its root file system."""
        if runtime == "crun":
            self.need_crun(version)
        box = self.gpu(version)
        self.config(box.stage, f"programs: [{runtime}]")
        # With a cache that the runtime does not edit the hook runs ldconfig. Without one the runtime writes it.
        loader = box.directory / "rootfs/lib64/ld-linux-x86-64.so.2"
        loader.parent.mkdir(exist_ok=True)
        loader.write_text("a loader")
        if has_cache:
            (box.directory / "rootfs/etc/ld.so.cache").write_text("of another format")
        return box

    def pod(self, uid: str, visible: str | None = None) -> Box:
        """A container called "main" in a pod; nothing is allocated to it yet."""
        box = runtime_test.Completed.pod(self, uid, visible)
        self.addCleanup(box.delete)  # before its cgroups are removed
        return box

    def attempt(self, box: Box, **options) -> subprocess.CompletedProcess:
        """Creates and starts it. A refusal is fine, a crash or a report of a sanitizer is not."""
        done = box.create(**options)
        if done.returncode == 0:
            done = box.call("start", box.name)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertNotIn("Sanitizer", done.stderr)
        return done

    def check_gpu(self, box: Box) -> None:
        """It has its GPU, the driver's libraries and a loader cache that names them."""
        self.check_files(box)
        self.check_opens(box)

    def check_untouched(self, directory: pathlib.Path, before: dict, why: str) -> None:
        after = listing(directory)
        changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
        self.assertEqual(changed, [], why)


def listing(directory: pathlib.Path) -> dict[str, tuple]:
    """Everything below a directory, with owners, access bits, times, symlink targets and contents."""
    found = {}
    for path in [directory, *directory.rglob("*")]:
        status = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path)] = (status.st_uid, status.st_mode, status.st_mtime_ns, content)
    return found


def make_victim(box: Box) -> pathlib.Path:
    """A directory of the host, outside the image, with a file and a symlink that belong to root."""
    victim = box.directory / "victim"
    (victim / "directory").mkdir(parents=True)
    (victim / "file").write_text("of the host")
    (victim / "sh").symlink_to("file")
    return victim


def add_volume(box: Box) -> pathlib.Path:
    """A directory of the host that the container has as /volume."""
    volume = box.directory / "volume"
    volume.mkdir()
    (box.directory / "rootfs/volume").mkdir()
    box.spec["mounts"].append({"destination": "/volume", "type": "bind", "source": str(volume), "options": ["rbind"]})
    box.write()
    return volume


def add_proc_of_host(box: Box) -> str:
    """Adds the host's /proc as a volume, and returns the path of the host's root through it."""
    box.spec["mounts"].append({"destination": "/host/proc", "type": "bind", "source": "/proc", "options": ["rbind"]})
    box.write()
    return f"/host/proc/{box.stage.holder.pid}/root"


def compile_c(code: str, file: pathlib.Path, *options: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", *options, "-x", "c", "-", "-o", str(file)]
    subprocess.run(command, input=code, text=True, check=True, timeout=engines.TIMEOUT)


def make_library(file: pathlib.Path, soname: str) -> None:
    """A shared library with this SONAME, which may have any characters."""
    compile_c("", file, "-shared", "-nostdlib", "-Wl,-soname", "-Xlinker", soname)


def make_site_device(stage: gpu_stage.Stage, place: pathlib.Path, *nodes: str) -> pathlib.Path:
    """A CDI spec on the host; its device has a mount, a hook and perhaps nodes. Returns the file that the hook creates."""
    secret, mark = place / "secret", place / "hook-ran"
    secret.write_text("of the host")
    edits = {
        "mounts": [{"hostPath": str(secret), "containerPath": "/secret", "options": ["bind", "ro"]}],
        "hooks": [{"hookName": "createRuntime", "path": which("touch"), "args": ["touch", str(mark)]}],
        "deviceNodes": [{"path": node} for node in nodes],
    }
    kind, name = SITE_DEVICE.split("=")
    spec = {"cdiVersion": "0.5.0", "kind": kind, "devices": [{"name": name, "containerEdits": edits}]}
    directory = stage.path("/etc/cdi")
    directory.mkdir(exist_ok=True)
    (directory / "site.json").write_text(json.dumps(spec))
    return mark


def allocation(uid: str, container: str, ids: list[str], cdi: tuple[str, ...] = ()) -> dict:
    """An entry of kubelet's checkpoint; the response of a device plugin may name CDI devices."""
    response = base64.b64encode(engines.message({5: [{1: name} for name in cdi]})).decode()
    container_key = {"PodUID": uid, "ContainerName": container}
    return container_key | {"ResourceName": "nvidia.com/gpu", "DeviceIDs": {"-1": ids}, "AllocResp": response}


def write_checkpoint(stage: gpu_stage.Stage, *entries: dict) -> pathlib.Path:
    """In the format of kubelet."""
    file = stage.path("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint")
    file.parent.mkdir(parents=True, exist_ok=True)
    registered = {"nvidia.com/gpu": [gpu_stage.UUID, gpu_stage.SECOND_UUID]}
    data = {"PodDeviceEntries": list(entries), "RegisteredDevices": registered}
    file.write_text(json.dumps({"Data": data, "Checksum": 1}))
    file.chmod(0o600)
    return file


# ---- Attacks on the guard and the census ----------------------------------------------------------------------------

import secrets
import time

from guarded import eventually, guarding

SECONDS_TO_GUARD = 10  # for a new container on a busy host; under the attacks it had been 38 seconds and more


def container_id() -> str:
    """64 digits, as docker, containerd and podman use them."""
    return secrets.token_hex(32)


def heal_only(*containers: str) -> str:
    """The config of a guard that heals these containers, by id or pattern, and observes all others."""
    rules = ", ".join(f"{{container: '{name}', mode: heal}}" for name in containers)
    return f"guard:\n  mode: observe\n  rules: [{rules}]\n"


class GuardCase(ServedCase):
    """Attacks on a guard without an HTTP server."""

    def cgroup(self, path: pathlib.Path) -> pathlib.Path:
        path.mkdir()
        self.addCleanup(remove_cgroup, path)
        return path

    def delegated(self, path: pathlib.Path) -> pathlib.Path:
        """A cgroup that a user without privileges may divide and populate, as systemd delegates them."""
        self.cgroup(path)
        for name in ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads", "tasks"):
            if (path / name).exists():
                os.chown(path / name, NOBODY, NOBODY)
        return path

    def owed(self, parent: pathlib.Path, name: str = "") -> Plain:
        """A container below this cgroup that is owed three devices by the ledger, and has them."""
        name, nodes = name or engines.unique_name("plain"), engines.GPU_NODES
        container = Plain(parent, name, nodes)
        self.addCleanup(remove_cgroup, container.cgroup)
        self.addCleanup(container.close)
        hierarchy = V1 if container.is_v1 else V2
        self.enterContext(ledger_entry(name, nodes, cgroup=f"/{container.cgroup.relative_to(hierarchy)}"))
        container.restrict()
        return container

    def guard(self, *options: str, config: str = "", containers: int = 0) -> Daemon:
        return self.enterContext(guarding(HOLDFASTD, *options, config=config, containers=containers))

    def seconds_until_guarded(self, container: Plain, limit: float = 3 * SECONDS_TO_GUARD) -> float:
        """Removes its devices until the guard restores them; the limit if it does not."""
        began = time.monotonic()
        opener = self.open_all(container)

        def is_restored() -> bool:
            self.take(container)
            time.sleep(0.1)
            return opener.look()["last"] == guard_test.FINE

        eventually(is_restored, limit)
        return time.monotonic() - began

    def check_guarded(self, container: Plain, why: str = "") -> None:
        self.assertLess(self.seconds_until_guarded(container), SECONDS_TO_GUARD, why)


def close_cgroup(cgroup: pathlib.Path) -> pathlib.Path:
    """Makes the cgroup deny all devices but those with major 1."""
    container = Plain.__new__(Plain)  # Only its cgroup is used.
    container.cgroup, container.is_v1 = cgroup, cgroup.is_relative_to(V1)
    container.deny_all()
    return cgroup


# A process named conmon; holdfast parses the options after argv[3]. In its own cgroup, argv[1], it starts the first
# process of a pid namespace, in the cgroup argv[2], as the user argv[3].
CONMON = r"""
import ctypes, os, sys, time
own, inner, uid = sys.argv[1], sys.argv[2], int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(1, 9)
if own: open(own + "/cgroup.procs", "w").write("0")
procs = os.open(inner + "/cgroup.procs", os.O_WRONLY)
if uid:
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
    libc.prctl(1, 9)
    if libc.unshare(0x10000000) != 0: sys.exit("no user namespace")
if libc.unshare(0x00020000 | 0x20000000) != 0: sys.exit("unshare")  # of mounts, and a pid namespace for children
if os.fork() == 0:
    libc.prctl(1, 9)
    os.write(procs, b"0")
    print("ready", flush=True)
while True: time.sleep(60)
"""


@contextlib.contextmanager
def conmon(own: pathlib.Path | str, inner: pathlib.Path, *options: str, uid: int = 0):
    """A monitor process with a container; `options` are conmon's, such as -c ID -b BUNDLE -r RUNTIME."""
    with tempfile.TemporaryDirectory(prefix="hf-attack-") as directory:
        script = pathlib.Path(directory, "script")
        script.write_text(CONMON)
        command = ["conmon", str(script), str(own), str(inner), str(uid), *options]
        environment = os.environ | {"PYTHONHOME": sys.base_prefix}
        settings = {"stdout": subprocess.PIPE, "text": True, "env": environment}
        process = subprocess.Popen(command, executable=sys.executable, **settings)
        try:
            if (said := process.stdout.readline()) != "ready\n":
                raise engines.Unavailable(f"no monitor process: {said}")
            yield process
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


class Scripted(Plain):
    """The first process of a pid namespace, alone in a cgroup, that runs lines of shell; one of them prints "ready"."""

    def __init__(self, parent: pathlib.Path, name: str, lines: list[str], nodes=None, spaces=("--mount",)):
        self.id, self.cgroup, self.nodes = name, parent / name, nodes or {}
        self.is_v1, self.left = self.cgroup.is_relative_to(V1), []
        self.cgroup.mkdir()
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", *spaces, "sh", "-ec"]
        script = "\n".join([f'echo 0 >"{self.cgroup}/cgroup.procs"', *lines])
        self.holder = subprocess.Popen([*command, script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        if self.holder.stdout.readline() != b"ready\n":
            self.close()
            remove_cgroup(self.cgroup)
            raise RuntimeError("such a container cannot be started here")
        self.pid = int(pathlib.Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children").read_text().split()[0])


def start_exec_loop(parent: pathlib.Path, name: str) -> Scripted:
    """A container whose first process executes itself again all the time."""
    nodes = [f"mknod -m 666 {path} c {major} {minor}" for path, (major, minor) in engines.GPU_NODES.items()]
    lines = ["mount -t tmpfs -o mode=755 none /dev", "mknod -m 666 /dev/null c 1 3", *nodes, "echo ready"]
    again = ["export AGAIN='exec sh -c \"$AGAIN\" \"$$\" again and again'", 'exec sh -c "$AGAIN"']
    return Scripted(parent, name, [*lines, *again], engines.GPU_NODES)
