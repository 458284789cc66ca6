"""Real containers with a stand-in GPU: docker, containerd, podman, runc and crun, on cgroup v1 and on cgroup v2."""

import contextlib
import ctypes
import dataclasses
import hashlib
import io
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator

GPU = "/dev/nvidia0"
GPU_CONTROL = "/dev/nvidiactl"
FUSE = "/dev/fuse"  # a device whose driver is there
GPU_NODES = {GPU: (195, 0), GPU_CONTROL: (195, 255), FUSE: (10, 229)}
PLAIN_NODES = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
VIEWS = {
    "v1": "umount /sys/fs/cgroup/unified",
    "v2": "mount -t cgroup2 none /sys/fs/cgroup",
    "hybrid": "true",
}
CGROUPS = pathlib.Path("/sys/fs/cgroup")
IMAGE = "localhost/hf-e2e:latest"
SLEEP = ["/bin/busybox", "sleep", "600"]
TIMEOUT = 60


class Unavailable(RuntimeError):
    """The engine cannot be had or cannot start on this machine; the text says why. `output`: what a command that failed printed."""

    def __init__(self, why: str, output: str = ""):
        super().__init__(why)
        self.output = output


def program(name: str) -> str:
    """Debian's own copy first: the machine may have something else of that name in /usr/local. A path is used as it is."""
    if name.startswith("/"):
        return name
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") or shutil.which(name)
    if not found:
        raise Unavailable(f"needs {name}")
    return found


def need(*names: str) -> None:
    for name in names:
        program(name)


# ---- crun on v2 where root may not raise limits ----------------------------------------------------------------------


def pretend_memlock() -> None:
    """crun dies where root lacks CAP_SYS_RESOURCE: from here on, raising RLIMIT_MEMLOCK does nothing and succeeds."""
    if int(re.search(r"CapEff:\s*(\w+)", pathlib.Path("/proc/self/status").read_text())[1], 16) >> 24 & 1:
        return
    setrlimit, prlimit = {"x86_64": (160, 302), "aarch64": (164, 261)}[os.uname().machine]
    load, equal, answer, memlock = 0x20, 0x15, 0x06, 8
    lines = [
        (load, 0, 0, 0), (equal, 0, 2, setrlimit), (load, 0, 0, 16), (equal, 5, 6, memlock),
        (equal, 0, 5, prlimit), (load, 0, 0, 24), (equal, 0, 3, memlock), (load, 0, 0, 32), (equal, 1, 0, 0),
        (answer, 0, 0, 0x00050000), (answer, 0, 0, 0x7FFF0000),
    ]  # fmt: skip
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    filter_ = ctypes.create_string_buffer(struct.pack("@HP", len(lines), ctypes.addressof(code)))
    if ctypes.CDLL(None, use_errno=True).prctl(22, 2, filter_) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


# ---- A mount namespace that shows one cgroup version and a GPU -------------------------------------------------------


def view_script(version: str, more: list[str]) -> str:
    lines = [VIEWS[version], "mount -t tmpfs -o mode=755 dev /dev", "mkdir /dev/pts /dev/shm /dev/mqueue"]
    lines += [f"mknod -m 666 /dev/{name} c 1 {minor}" for name, minor in PLAIN_NODES.items()]
    lines += [f"mknod -m 666 {path} c {major} {minor}" for path, (major, minor) in GPU_NODES.items()]
    lines += ["mknod -m 666 /dev/tty c 5 0", "mount -t devpts -o newinstance,ptmxmode=666 devpts /dev/pts"]
    lines += ["ln -s pts/ptmx /dev/ptmx", "ln -s /proc/self/fd /dev/fd", "ln -s fd/0 /dev/stdin"]
    lines += ["ln -s fd/1 /dev/stdout", "ln -s fd/2 /dev/stderr", *more, "echo ready", "exec sleep infinity"]
    return "\n".join(lines)


class View:
    """The machine as an engine is to see it; everything started in here ends with it."""

    def __init__(self, version: str, more: list[str] | None = None):
        """`more` are lines of a shell script that change what is seen."""
        self.version = version
        self.before = pretend_memlock if version == "v2" else None
        command = ["unshare", "-m", "sh", "-ec", view_script(version, more or [])]
        self.holder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self.holder.stdout.readline() != b"ready\n":
            _, said = self.holder.communicate(timeout=TIMEOUT)
            raise Unavailable(f"no view of cgroup {version}: {said.decode().strip()}")
        # Open until the end: the inode number of a namespace that is gone may be given to a container of another test.
        self.namespace = os.open(f"/proc/{self.holder.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self.inode = os.fstat(self.namespace).st_ino
        self.cgroups: set[str] = set()  # Of our containers alone.
        self.shared_cgroups: set[str] = set()  # Of the engine; other containers may be in them as well.

    def inside(self, command: list[str]) -> list[str]:
        return ["nsenter", "--mount", "--target", str(self.holder.pid), "--", *command]

    def call(self, *command: str) -> str:
        """Runs a command to its end; into files, as a container in the background would hold a pipe open."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            done = subprocess.run(
                self.inside([*command]), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                timeout=TIMEOUT, check=False, preexec_fn=self.before,
            )  # fmt: skip
            out.seek(0)
            err.seek(0)
            if done.returncode != 0:
                raise Unavailable(f"{' '.join(command)}: {err.read().strip()}", out.read())
            return out.read()

    def start(self, *command: str, log: pathlib.Path) -> subprocess.Popen:
        with log.open("w") as out:
            return subprocess.Popen(
                self.inside([*command]), stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=self.before
            )

    def close(self) -> None:
        """Ends daemons, shims and monitors, what descends from them, and what is left in the containers' cgroups."""
        for _ in range(100):
            ours = [pid for pid in processes() if mount_namespace(pid) == self.inode] + members(self.cgroups)
            for pid in descendants(ours):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.holder.poll()
            if not ours:
                break
            time.sleep(0.05)
        os.close(self.namespace)
        self.holder.wait(timeout=TIMEOUT)
        self.holder.stdout.close()
        self.holder.stderr.close()
        remove_cgroups(self.cgroups | self.shared_cgroups)


def processes() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def mount_namespace(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}/ns/mnt").st_ino
    except OSError:
        return None


def parent_of(pid: int) -> int | None:
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    except OSError:
        return None


def descendants(roots: list[int]) -> set[int]:
    """The processes themselves and all below them."""
    children: dict[int | None, list[int]] = {}
    for pid in processes():
        children.setdefault(parent_of(pid), []).append(pid)
    found: set[int] = set()
    todo = list(roots)
    while todo:
        pid = todo.pop()
        found.add(pid)
        todo += [child for child in children.get(pid, []) if child not in found]
    return found


@contextlib.contextmanager
def view(version: str) -> Iterator[View]:
    machine = View(version)
    try:
        yield machine
    finally:
        machine.close()


Place = Callable[[str], contextlib.AbstractContextManager[View]]  # where an engine is to run, by cgroup version


@contextlib.contextmanager
def scratch_directory() -> Iterator[pathlib.Path]:
    """Short, as sockets lie in it; what an engine left unreadable or mounted elsewhere does not stop the removal."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="hf-e2e-", dir="/tmp"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


# ---- What all containers have ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Container:
    """A running container of any engine."""

    engine: str
    version: str
    name: str
    id: str
    pid: int
    update: Callable[[], object] | None = None
    bundle: pathlib.Path | None = None
    state: pathlib.Path | None = None
    record: pathlib.Path | None = None
    call: Callable[..., str] | None = None  # runs the runtime, or the engine's client, with these arguments
    restart: Callable[[], None] | None = None  # of the engine
    cri: Callable[[str, dict[int, object]], bytes] | None = None  # a call of the engine's CRI

    def cgroups(self) -> list[pathlib.Path]:
        return cgroups_of(self.pid)

    def with_nodes(self) -> "Container":
        """If the engine was not asked for a GPU, its nodes are created, which nothing allows: what a hook leaves."""
        for path, numbers in GPU_NODES.items():
            with contextlib.suppress(FileExistsError):
                os.mknod(f"/proc/{self.pid}/root{path}", 0o666 | stat.S_IFCHR, os.makedev(*numbers))
        return self

    def inject_v1(self) -> None:
        """What libnvidia-container does on v1: allowed behind the engine's back."""
        for cgroup in self.cgroups():
            for major, minor in GPU_NODES.values() if (cgroup / "devices.allow").exists() else []:
                (cgroup / "devices.allow").write_text(f"c {major}:{minor} rw")

    def opens(self, path: str = GPU) -> str:
        """From inside the container: ENXIO says that the cgroup lets it through, EPERM that it does not."""
        script = (
            "import errno,os,sys\n"
            "root=os.open('/proc/%s/root'%sys.argv[1],os.O_RDONLY)\n"
            "for path in sys.argv[3:]: open(path+'/cgroup.procs','w').write('0')\n"
            "try: os.open(sys.argv[2].lstrip('/'),os.O_RDWR|os.O_NONBLOCK|os.O_NOCTTY,dir_fd=root); print('ok')\n"
            "except OSError as error: print(errno.errorcode[error.errno])\n"
        )
        command = [sys.executable, "-c", script, str(self.pid), path, *map(str, self.cgroups())]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout.strip()

    def update_cpus(self) -> None:
        """The engine's own update of CPU settings, which has nothing to do with devices."""
        if not self.update:
            raise Unavailable(f"{self.engine} has no update")
        self.update()


def cgroups_of(pid: int) -> list[pathlib.Path]:
    """The process's cgroups that can hold back devices, as the machine's own mounts show them."""
    found = []
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "devices") and path != "/":
            found.append(CGROUPS / (controllers or "unified") / path.lstrip("/"))
    return found


def members(paths: set[str]) -> list[int]:
    found: list[int] = []
    for path in (mount / path.lstrip("/") for mount in CGROUPS.iterdir() for path in paths):
        with contextlib.suppress(OSError):
            found += map(int, (path / "cgroup.procs").read_text().split())
    return found


def remove_cgroups(paths: set[str]) -> None:
    """With the parents that an engine makes and leaves behind, as far as they are empty."""
    for path in (mount / path.lstrip("/") for mount in CGROUPS.iterdir() for path in sorted(paths, reverse=True)):
        for step in (path, *path.parents):
            if step.parent == CGROUPS or not remove_empty(step):
                break


def remove_empty(path: pathlib.Path) -> bool:
    """A dying process may hold it for a moment."""
    for _ in range(100):
        try:
            path.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            if any(entry.is_dir() for entry in path.iterdir()):
                return False
            time.sleep(0.01)
        else:
            return True
    return False


# ---- An image -------------------------------------------------------------------------------------------------------


def fill_rootfs(rootfs: pathlib.Path) -> pathlib.Path:
    for directory in ("bin", "dev", "etc", "proc", "sys", "tmp"):
        (rootfs / directory).mkdir(parents=True)
    shutil.copy(program("busybox"), rootfs / "bin/busybox")
    return rootfs


def write_image(directory: pathlib.Path) -> pathlib.Path:
    """An image archive that docker, podman and ctr all load."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(fill_rootfs(directory / "image"), arcname=".")
    shutil.rmtree(directory / "image")
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    config = json.dumps({
        "architecture": architecture,
        "os": "linux",
        "config": {"Cmd": SLEEP, "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }).encode()  # fmt: skip
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [IMAGE], "Layers": [f"{digest}/layer.tar"]}]
    files = {config_name: config, manifest[0]["Layers"][0]: layer.getvalue()}
    files["manifest.json"] = json.dumps(manifest).encode()
    with tarfile.open(directory / "image.tar", "w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return directory / "image.tar"


def unique_name(engine: str) -> str:
    return f"hf-e2e-{engine}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


# ---- runc and crun by hand ------------------------------------------------------------------------------------------


def state_file(kind: str) -> str:
    return "status" if kind == "crun" else "state.json"


def runtime_update(machine: View, runtime: list[str], name: str) -> None:
    """On v2 an update of nothing: the CPU controllers of a hybrid machine belong to v1."""
    if machine.version != "v2":
        machine.call(*runtime, "update", "--cpuset-cpus", "0", name)
        return
    with tempfile.NamedTemporaryFile("w", suffix=".json") as resources:
        resources.write("{}")
        resources.flush()
        machine.call(*runtime, "update", "-r", resources.name, name)


def without_controllers(runtime: str, directory: pathlib.Path) -> str:
    """The runtime behind a wrapper that takes out of the specification what no v2 controller is there for."""
    wrapper = directory / pathlib.Path(runtime).name
    edit = r's/,"\(cpu\|blockIO\)":{[^}]*}//g'
    case = f"""case " $* " in *" create "*) sed -i '{edit}' config.json ;; esac"""
    wrapper.write_text(f'#!/bin/sh\n{case}\nexec {runtime} "$@"\n')
    wrapper.chmod(0o755)
    return str(wrapper)


def write_bundle(directory: pathlib.Path, cgroup: str, gpu: bool) -> None:
    fill_rootfs(directory / "rootfs")
    nodes = [{"type": "c", "major": major, "minor": minor} for major, minor in GPU_NODES.values() if gpu]
    allowed = [node | {"allow": True, "access": "rwm"} for node in nodes]
    config = {
        "ociVersion": "1.0.2",
        "process": {"cwd": "/", "args": SLEEP, "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}},
        "root": {"path": "rootfs"},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "linux": {
            "cgroupsPath": cgroup,
            "namespaces": [{"type": kind} for kind in ("mount", "pid", "ipc", "uts")],
            "devices": [node | {"path": path, "fileMode": 0o666} for path, node in zip(GPU_NODES, nodes)],
            "resources": {"devices": [{"allow": False, "access": "rwm"}, *allowed]},
        },
    }
    (directory / "config.json").write_text(json.dumps(config))


@contextlib.contextmanager
def oci(version: str, runtime: str, *, gpu: bool = True, parent: str = "") -> Iterator[Container]:
    """A container of runc, crun or a program given by its path, with no engine above it."""
    runtime_path = program(runtime)
    kind = pathlib.Path(runtime_path).name
    name = unique_name(kind)
    with scratch_directory() as directory, view(version) as machine:
        root = f"/run/{'crun' if kind == 'crun' else 'runc'}"  # Where it looks by itself, and holdfast with it.
        start = [runtime_path, "--root", root]
        cgroup = f"/{parent}/{name}" if parent else f"/{name}"
        write_bundle(directory, cgroup, gpu)
        machine.cgroups.add(cgroup)
        with cleanup(lambda: machine.call(*start, "delete", "-f", name)):
            machine.call(*start, "run", "-d", "--bundle", f"{directory}", name)
            yield Container(
                kind, version, name, name, json.loads(machine.call(*start, "state", name))["pid"],
                bundle=directory,
                state=pathlib.Path(root) / name / state_file(kind),
                update=lambda: runtime_update(machine, start, name),
                call=lambda *arguments: machine.call(*start, *arguments),
            ).with_nodes()  # fmt: skip


# ---- An old runc ----------------------------------------------------------------------------------------------------


def debian_mirror() -> str:
    """A line of the machine's own package sources, without suite and components; no mirror is named anywhere else."""
    apt = pathlib.Path("/etc/apt")
    for path in sorted(apt.glob("sources.list.d/*.sources")):
        for stanza in path.read_text().split("\n\n"):
            fields = dict(re.findall(r"^(\S+):\s*(.+)$", stanza, re.M))
            if "security" not in fields.get("Suites", "security") and "main" in fields.get("Components", ""):
                signed = f"[signed-by={fields['Signed-By']}] " if fields.get("Signed-By", "").startswith("/") else ""
                return f"deb {signed}{fields['URIs'].split()[0]}"
    lines = re.compile(r"^(deb (?:\[.*?\] )?\S+) [\w-]+ .*\bmain\b", re.M)
    for path in (apt / "sources.list", *sorted(apt.glob("sources.list.d/*.list"))):
        if path.exists() and (found := lines.search(path.read_text())):
            return found[1]
    raise Unavailable("this machine's package sources name no Debian mirror")


def apt_of(suite: str, directory: pathlib.Path) -> list[str]:
    """The options with which apt-get and apt-cache know another Debian release; the machine's own package lists stay alone."""
    (directory / "sources").write_text(f"{debian_mirror()} {suite} main\n")
    (directory / "status").touch()
    for needed in ("lists/partial", "cache/archives/partial"):
        (directory / needed).mkdir(parents=True)
    places = {
        "Dir::Etc::sourcelist": "sources", "Dir::Etc::sourceparts": "none", "Dir::State::lists": "lists",
        "Dir::State::status": "status", "Dir::Cache": "cache",
    }  # fmt: skip
    options = ["-qq", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none"]
    options += [argument for key, name in places.items() for argument in ("-o", f"{key}={directory / name}")]
    if not ask_apt(directory, "apt-get", *options, "update"):
        raise Unavailable(f"the package lists of {suite} cannot be had")
    return options


def ask_apt(directory: pathlib.Path, *command: str) -> bool:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode == 0 and "Err:" not in done.stdout


def download_package(package: str, options: list[str], directory: pathlib.Path) -> None:
    """Unpacks it into the directory "unpacked"."""
    ask_apt(directory, "apt-get", *options, "download", package)
    found = list(directory.glob(f"{package}_*.deb"))
    if not found:
        raise Unavailable(f"{package} cannot be had")
    subprocess.run(["dpkg", "-x", found[0], directory / "unpacked"], check=True, timeout=TIMEOUT)


def fetch_package(package: str, suite: str, cache: pathlib.Path) -> pathlib.Path:
    """Unpacks a package of another Debian release below the cache, once."""
    target = cache / f"{package}-{suite}"
    if target.exists():
        return target
    with scratch_directory() as directory:
        download_package(package, apt_of(suite, directory), directory)
        cache.mkdir(parents=True, exist_ok=True)
        part = cache / f".{target.name}-{os.getpid()}"
        shutil.move(directory / "unpacked", part)
        try:
            part.rename(target)
        except OSError:  # another suite was faster
            shutil.rmtree(part)
    return target


def program_of_prometheus(name: str, cache: pathlib.Path) -> str:
    """The one of this machine, or of Debian's package, which is not installed: that would start its service."""
    return shutil.which(name) or str(fetch_package("prometheus", "bookworm", cache) / "usr/bin" / name)


def old_runc(cache: pathlib.Path) -> str:
    """Debian 11's runc 1.0.0~rc93, whose update takes back every device that its specification does not name."""
    return str(fetch_package("runc", "bullseye", cache) / "usr/sbin/runc")


# ---- docker ---------------------------------------------------------------------------------------------------------


class Server:
    """A daemon that answers `ready`."""

    def __init__(self, machine: View, command: tuple[str, ...], ready: Callable[[], str], log: pathlib.Path):
        self.machine, self.command, self.ready, self.log = machine, command, ready, log
        self.start()

    def start(self) -> None:
        self.process = self.machine.start(*self.command, log=self.log)
        for _ in range(TIMEOUT * 10):
            if answers(self.ready):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        said = self.log.read_text()[-600:].strip()
        self.stop()
        raise Unavailable(f"{self.command[0]} does not start: {said}")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=TIMEOUT)

    def restart(self) -> None:
        """What it made goes on meanwhile."""
        self.stop()
        self.start()


@contextlib.contextmanager
def daemon(machine: View, *command: str, ready: Callable[[], str], log: pathlib.Path) -> Iterator[Server]:
    """Asked to end in the end, its containers being gone by then."""
    machine.call("sh", "-c", "mkdir -p /run/containerd/s && mount -t tmpfs none /run/containerd/s")  # The shims' sockets.
    server = Server(machine, command, ready, log)
    try:
        yield server
    finally:
        server.stop()


def answers(ask: Callable[[], str]) -> bool:
    try:
        ask()
    except Unavailable:
        return False
    return True


@contextlib.contextmanager
def cleanup(*steps: Callable[[], object]) -> Iterator[None]:
    """Each step is tried, whatever became of the others."""
    try:
        yield
    finally:
        for step in steps:
            with contextlib.suppress(Unavailable, subprocess.TimeoutExpired, OSError):
                step()


def device_options(gpu: bool) -> list[str]:
    return [argument for node in GPU_NODES if gpu for argument in ("--device", node)]


@contextlib.contextmanager
def docker(
    version: str, *, runtime: str = "runc", gpu: bool = True, place: Place = view, options: tuple[str, ...] = ()
) -> Iterator[Container]:
    """dockerd with a containerd of its own, both private; `options` are more of the container's."""
    need("containerd", "busybox")
    server, client, runtime_path = program("dockerd"), program("docker"), program(runtime)
    kind = pathlib.Path(runtime_path).name
    name = unique_name("docker")
    with scratch_directory() as directory, place(version) as machine:
        socket = f"unix://{directory}/d.sock"
        if version == "v2" and kind == "crun":
            runtime_path = without_controllers(runtime_path, directory)
        (directory / "daemon.json").write_text(json.dumps({"deprecated-key-path": f"{directory}/key.json", "live-restore": True}))
        where = ["--data-root", f"{directory}/data", "--exec-root", f"{directory}/exec", "--pidfile", f"{directory}/pid"]
        where += ["--config-file", f"{directory}/daemon.json", "--add-runtime", f"tested={runtime_path}"]
        quiet = ["--iptables=false", "--ip6tables=false", "--ip-masq=false", "--bridge=none", "--storage-driver=vfs"]

        def call(*arguments: str) -> str:
            return machine.call(client, "--config", f"{directory}", "-H", socket, *arguments)

        def ready() -> str:
            return call("version")

        with (
            daemon(machine, server, "-H", socket, *where, *quiet, ready=ready, log=directory / "log") as running,
            cleanup(lambda: call("rm", "-f", name)),
        ):
            call("load", "-i", f"{write_image(directory)}")
            what = ["--network", "none", "--name", name, *device_options(gpu), *options]
            handler = "runc" if runtime == "runc" else "tested"
            whole = call("create", "--runtime", handler, *what, IMAGE).strip()
            machine.cgroups.add(f"/docker/{whole}")
            call("start", whole)
            pid = int(call("inspect", "-f", "{{.State.Pid}}", whole))
            yield Container(
                f"docker+{kind}", version, name, whole, pid,
                bundle=directory / "exec/containerd/daemon/io.containerd.runtime.v2.task/moby" / whole,
                state=directory / "exec/runtime-runc/moby" / whole / state_file(kind),
                record=directory / "data/containers" / whole / "config.v2.json",
                update=lambda: call("update", "--cpuset-cpus", "0", whole),
                call=call,
                restart=running.restart,
            ).with_nodes()  # fmt: skip


# ---- containerd -----------------------------------------------------------------------------------------------------

RUNTIME_STATE = pathlib.Path("/run/containerd/runc")


@contextlib.contextmanager
def containerd(
    version: str, *, runtime: str = "runc", namespace: str = "default", gpu: bool = True,
    place: Place = view, options: tuple[str, ...] = (),
) -> Iterator[Container]:  # fmt: skip
    """A private containerd and ctr; the runtime's state lies where it always does, in /run/containerd."""
    need("busybox")
    server, client, runtime_path = program("containerd"), program("ctr"), program(runtime)
    kind = pathlib.Path(runtime_path).name
    name = unique_name("containerd")
    with scratch_directory() as directory, place(version) as machine:
        socket = f"{directory}/c.sock"
        (directory / "config.toml").write_text(
            f'version = 2\nroot = "{directory}/root"\nstate = "{directory}/state"\n'
            f'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\naddress = "{socket}"\n'
        )
        state = RUNTIME_STATE / namespace / name

        def call(*arguments: str) -> str:
            return machine.call(client, "-a", socket, "-n", namespace, *arguments)

        def ready() -> str:
            return call("version")

        machine.cgroups.add(f"/{namespace}/{name}")
        with (
            daemon(machine, server, "--config", f"{directory}/config.toml", ready=ready, log=directory / "log") as running,
            cleanup(
                lambda: call("task", "delete", "--force", name),
                lambda: call("container", "delete", name),
                lambda: shutil.rmtree(state, ignore_errors=True),
            ),
        ):
            call("image", "import", "--snapshotter", "native", f"{write_image(directory)}")
            how = ["--snapshotter", "native", "--runc-binary", runtime_path, *device_options(gpu)]
            how += [*options, "--fifo-dir", f"{directory}/fifo", *(["--cpu-shares", "0"] if version == "v2" else [])]
            call("run", "-d", *how, IMAGE, name)
            pid = int(re.search(rf"{name}\s+(\d+)", call("task", "list"))[1])
            yield Container(
                f"containerd+{kind}", version, name, name, pid,
                bundle=directory / "state/io.containerd.runtime.v2.task" / namespace / name,
                state=state / state_file(kind),
                update=lambda: runtime_update(machine, [runtime_path, "--root", f"{state.parent}"], name),
                call=call,
                restart=running.restart,
            ).with_nodes()  # fmt: skip


# ---- podman ---------------------------------------------------------------------------------------------------------


def ulimit(name: str) -> str:
    """Little: podman asks for more than this process has, which root without CAP_SYS_RESOURCE may not give."""
    soft, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))
    return f"{name}={min(soft, 1024)}:{min(hard, 1024)}"


@contextlib.contextmanager
def podman(
    version: str, *, runtime: str = "crun", gpu: bool = True, place: Place = view, options: tuple[str, ...] = ()
) -> Iterator[Container]:
    """Rootful podman with storage of its own; the runtime's state lies where it always does, in /run/runc or so."""
    need("conmon", "busybox")
    client, runtime_path = program("podman"), program(runtime)
    kind = pathlib.Path(runtime_path).name
    name = unique_name("podman")
    with scratch_directory() as directory, place(version) as machine:
        where = ["--root", f"{directory}/root", "--runroot", f"{directory}/runroot", "--tmpdir", f"{directory}/tmp"]
        where += ["--network-config-dir", f"{directory}/net"]
        how = ["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file"]
        limits = ["--ulimit", ulimit("nofile"), "--ulimit", ulimit("nproc")]
        limits += ["--pids-limit", "0"] if version == "v2" else []

        def call(*arguments: str) -> str:
            return machine.call(client, *where, *how, "--runtime", runtime_path, *arguments)

        def update() -> None:
            if version == "v2":
                runtime_update(machine, [runtime_path], whole)
            else:
                call("update", "--cpuset-cpus", "0", whole)

        states: list[pathlib.Path] = []
        with cleanup(
            lambda: call("rm", "-f", "-t", "0", name),
            lambda: [shutil.rmtree(state, ignore_errors=True) for state in states],
        ):
            call("load", "-i", f"{write_image(directory)}")
            what = ["--network", "none", "--name", name, *limits, *device_options(gpu), *options]
            whole = call("create", *what, IMAGE).strip()
            machine.cgroups.add(f"/libpod_parent/libpod-{whole}")
            machine.shared_cgroups.add("/libpod_parent/conmon")
            states.append(pathlib.Path("/run") / kind / whole)
            call("start", whole)
            pid = int(call("inspect", "-f", "{{.State.Pid}}", whole))
            yield Container(
                f"podman+{kind}", version, name, whole, pid,
                bundle=directory / "root/vfs-containers" / whole / "userdata",
                state=states[0] / state_file(kind),
                record=directory / "root/vfs-containers/containers.json",
                update=update,
            ).with_nodes()  # fmt: skip


# ---- Kubernetes: what kubelet asks of containerd --------------------------------------------------------------------


def message(fields: dict[int, object]) -> bytes:
    """Protocol buffers, as far as it is needed: numbers, texts, messages, and lists of texts or messages."""
    out = b""
    for number, value in fields.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, int):
                out += varint(number << 3) + varint(item)
            else:
                content = message(item) if isinstance(item, dict) else str(item).encode()
                out += varint(number << 3 | 2) + varint(len(content)) + content
    return out


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def first_text(answer: bytes) -> str:
    """Field 1 of an answer: an id, shorter than 128 bytes."""
    return answer[2 : 2 + answer[1]].decode() if answer[:1] == b"\x0a" else ""


def decode(content: bytes) -> dict[int, list]:
    """The fields of a message: numbers, and bytes of texts and messages."""

    def read_varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            value |= (content[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if content[at - 1] < 0x80:
                return value, at

    fields: dict[int, list] = {}
    at = 0
    while at < len(content):
        key, at = read_varint(at)
        value, at = read_varint(at)
        if key & 7 == 2:
            value, at = content[at : at + value], at + value
        fields.setdefault(key >> 3, []).append(value)
    return fields


def cri(socket: str, method: str, fields: dict[int, object]) -> bytes:
    """One call of containerd's CRI."""
    return grpc(socket, f"runtime.v1.RuntimeService/{method}", fields)


def grpc(socket: str, method: str, fields: dict[int, object]) -> bytes:
    """One call; curl speaks HTTP/2."""
    content = message(fields)
    url = f"http://localhost/{method}"
    command = [program("curl"), "-s", "--http2-prior-knowledge", "--unix-socket", socket, "--max-time", str(TIMEOUT)]
    command += ["-H", "content-type: application/grpc", "-H", "te: trailers", "-D", "/dev/stderr", "--data-binary", "@-"]
    frame = struct.pack(">BI", 0, len(content)) + content
    done = subprocess.run([*command, url], input=frame, capture_output=True, timeout=TIMEOUT, check=False)
    headers = done.stderr.decode()
    if done.returncode != 0 or not re.search(r"grpc-status: 0\b", headers):
        raise Unavailable(f"{method}: {headers.strip()[-400:] or done.returncode}")
    return done.stdout[5:]


@contextlib.contextmanager
def kubernetes(
    version: str, *, runtime: str = "runc", gpu: bool = True, place: Place = view, uid: str = "",
    environment: dict[str, str] | None = None,
) -> Iterator[Container]:  # fmt: skip
    """A pod of one container in a private containerd, as kubelet would have it made."""
    need("busybox", "curl")
    server, client, runtime_path = program("containerd"), program("ctr"), program(runtime)
    kind = pathlib.Path(runtime_path).name
    name, uid = unique_name("pod"), uid or str(uuid.uuid4())
    variables = [{1: key, 2: value} for key, value in (environment or {}).items()]
    parent = f"/kubepods/besteffort/pod{uid}"
    with scratch_directory() as directory, place(version) as machine:
        socket = f"{directory}/c.sock"
        if version == "v2":
            runtime_path = without_controllers(runtime_path, directory)
        plugin = '[plugins."io.containerd.grpc.v1.cri"'
        (directory / "config.toml").write_text(
            f'version = 2\nroot = "{directory}/root"\nstate = "{directory}/state"\n[grpc]\naddress = "{socket}"\n'
            f'{plugin}]\nsandbox_image = "{IMAGE}"\nrestrict_oom_score_adj = true\n'
            f'{plugin}.containerd]\nsnapshotter = "native"\n'
            f'{plugin}.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
            f'{plugin}.containerd.runtimes.runc.options]\nBinaryName = "{runtime_path}"\n'
        )

        def call(*arguments: str) -> str:
            return machine.call(client, "-a", socket, "-n", "k8s.io", *arguments)

        def ready() -> str:
            return call("version")

        ids: list[str] = []
        on_the_host_network = {1: {1: 2}}
        pod = {1: {1: name, 2: uid, 3: "hf-e2e"}, 6: {1: "app", 2: "hf-e2e"}, 8: {1: parent, 2: on_the_host_network}}
        with (
            daemon(machine, server, "--config", f"{directory}/config.toml", ready=ready, log=directory / "log"),
            cleanup(
                lambda: cri(socket, "StopPodSandbox", {1: ids[0]}) if ids else None,
                lambda: cri(socket, "RemovePodSandbox", {1: ids[0]}) if ids else None,
                lambda: [shutil.rmtree(RUNTIME_STATE / "k8s.io" / id_, ignore_errors=True) for id_ in ids],
            ),
        ):
            call("image", "import", "--snapshotter", "native", f"{write_image(directory)}")
            machine.shared_cgroups.add(parent)
            ids.append(first_text(cri(socket, "RunPodSandbox", {1: pod})))
            devices = [{1: node, 2: node, 3: "rwm"} for node in GPU_NODES if gpu]
            wanted = {1: {1: "main"}, 2: {1: IMAGE}, 3: SLEEP, 6: variables, 8: devices, 9: {1: "app", 2: "hf-e2e"}}
            ids.append(first_text(cri(socket, "CreateContainer", {1: ids[0], 2: wanted, 3: pod})))
            machine.cgroups |= {f"{parent}/{id_}" for id_ in ids}
            cri(socket, "StartContainer", {1: ids[1]})
            pid = int(re.search(rf"{ids[1]}\s+(\d+)", call("task", "list"))[1])
            cpus = {6: "0"} if version != "v2" else {}
            yield Container(
                f"kubernetes+{kind}", version, name, ids[1], pid,
                bundle=directory / "state/io.containerd.runtime.v2.task/k8s.io" / ids[1],
                state=RUNTIME_STATE / "k8s.io" / ids[1] / state_file(kind),
                update=lambda: cri(socket, "UpdateContainerResources", {1: ids[1], 2: cpus}),
                call=call,
                cri=lambda method, fields: cri(socket, method, fields),
            ).with_nodes()  # fmt: skip
