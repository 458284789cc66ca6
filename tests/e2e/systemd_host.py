"""A real systemd as PID 1 in namespaces (pure cgroup v2, D-Bus), and runc containers under its cgroup driver."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from support import V2, errno_of_open, remove_cgroup, which

GPU = (195, 0)
FUSE = (10, 229)  # a device whose driver is there
NODES = {GPU: "/dev/nvidia0", FUSE: "/dev/fuse"}
SYSTEMD = pathlib.Path("/lib/systemd/systemd")
PROGRAMS = ("systemctl", "busctl", "dbus-daemon", "runc", "busybox", "unshare", "nsenter", "setpriv")

# The machine's own root, read-only but for the scratch directory; what systemd writes goes to tmpfs, what it must not touch is hidden.
# Only our target and the bus are started: no sysinit.target, hence no udev, sysctl, fstab or getty.
BOOT = r"""
for group in $GROUPS_TO_JOIN; do echo 0 >"$group/cgroup.procs"; done
exec unshare --mount --cgroup --uts --ipc --net sh -ec '
mount --bind "$DIRECTORY" "$DIRECTORY"
mount -o remount,bind,ro /
for path in /dev /sys; do umount --recursive --lazy $path; done
for path in /dev /run /var/lib /etc/systemd/system; do mount -t tmpfs -o mode=755 tmpfs $path; done
umount --recursive --lazy /proc
mount -t proc proc /proc
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -t sysfs sysfs /sys
mount -t bpf bpf /sys/fs/bpf
if [ -z "$V1_HIERARCHIES" ]; then
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
    mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
    for name in $V1_HIERARCHIES; do
        mkdir "/sys/fs/cgroup/${name#name=}"
        mount -t cgroup -o "$name" cgroup "/sys/fs/cgroup/${name#name=}"
    done
fi
mkdir /dev/pts /dev/shm /dev/char /run/dbus
mount -t devpts -o newinstance,ptmxmode=666 devpts /dev/pts
ln -s pts/ptmx /dev/ptmx
ln -s /proc/self/fd /dev/fd
mknod -m 666 /dev/null c 1 3
mknod -m 666 /dev/zero c 1 5
mknod -m 666 /dev/full c 1 7
mknod -m 666 /dev/random c 1 8
mknod -m 666 /dev/urandom c 1 9
mknod -m 666 /dev/tty c 5 0
tr -d - </proc/sys/kernel/random/uuid >/run/machine-id
[ ! -e /etc/machine-id ] || mount --bind /run/machine-id /etc/machine-id
cp "$DIRECTORY"/units/* /etc/systemd/system/
exec env -i container=holdfast-test PATH=/usr/sbin:/usr/bin:/sbin:/bin "$SYSTEMD" --system --unit=holdfast-test.target
'
"""

UNITS = {
    "holdfast-test.target": "[Unit]\nDefaultDependencies=no\nRequires=dbus.service\nAfter=dbus.service\n",
    "dbus.socket": "[Unit]\nDefaultDependencies=no\n[Socket]\nListenStream=/run/dbus/system_bus_socket\n",
    "dbus.service": "[Unit]\nDefaultDependencies=no\nRequires=dbus.socket\nAfter=dbus.socket\n[Service]\nType=notify\n"
    "ExecStart=/usr/bin/dbus-daemon --system --address=systemd: --nofork --nopidfile --systemd-activation\n",
}


def why_no_systemd() -> str | None:
    """A description of what this machine lacks; None if nothing is missing."""
    if not SYSTEMD.exists():
        return "needs systemd"
    return next((f"needs {name}" for name in PROGRAMS if not which(name)), None)


class Systemd:
    """A booted systemd; `pid` is its PID 1 and `cgroup` its root in the hierarchy that rules devices, as seen from this machine."""

    def __init__(self, pid: int, groups: dict[str, pathlib.Path], directory: pathlib.Path):
        self.pid, self.groups, self.directory = pid, groups, directory
        self.cgroup = next((path for name, path in groups.items() if "devices" in name.split(",")), groups[""])
        self.root = pathlib.Path(f"/proc/{pid}/root")

    def enter(self, *command: str | os.PathLike) -> list[str | os.PathLike]:
        """The command line that runs a command of this machine inside: same paths, but inner pids, /proc, /sys, /run, /var and /dev."""
        join = [path / "init.scope" if (path / "init.scope").exists() else path for path in self.groups.values()]
        enter = 'for group in $0; do echo 0 >"$group/cgroup.procs"; done; exec nsenter -t "$1" -m -p -u -i -n -C -- "${@:2}"'
        return ["bash", "-ec", enter, " ".join(map(str, join)), str(self.pid), *command]

    def run(self, *command: str | os.PathLike, check: bool = True) -> subprocess.CompletedProcess:
        # Into files: a container that goes on in the background would hold a pipe open.
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            entered = self.enter(*command)
            code = subprocess.run(entered, stdin=subprocess.DEVNULL, stdout=out, stderr=err, timeout=60, check=False).returncode
            out.seek(0)
            err.seek(0)
            done = subprocess.CompletedProcess(command, code, out.read(), err.read())
        if check and code != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}".strip())
        return done

    def systemctl(self, *arguments: str) -> str:
        return self.run("systemctl", *arguments).stdout.strip()

    def daemon_reload(self) -> None:
        self.systemctl("daemon-reload")

    def announce(self, major: int, minor: int) -> None:
        """Makes /dev/char/MAJOR:MINOR, without which runc 1.1.3 to 1.1.6 do not pass a device of the spec to systemd."""
        self.run("mknod", f"/dev/char/{major}:{minor}", "c", str(major), str(minor))

    def wait(self, seconds: float = 30) -> None:
        """Until systemd says that it is running."""
        end = time.monotonic() + seconds
        state = "not started"
        while state != "running":
            if time.monotonic() > end or not self.root.exists():
                raise RuntimeError(f"systemd did not come up ({state}): {(self.directory / 'log').read_text()}")
            time.sleep(0.02)
            if (self.cgroup / "init.scope").exists():
                state = self.run("systemctl", "is-system-running", check=False).stdout.strip()

    @contextlib.contextmanager
    def container(self, devices: list[tuple[int, int]] = (), cpus: str = ""):
        """A running container of runc's systemd driver; `devices` are character devices that its spec allows, `cpus` its cpuset."""
        directory = pathlib.Path(tempfile.mkdtemp(prefix="c-", dir=self.directory))
        name = directory.name
        runc = ("runc", "--systemd-cgroup")
        make_bundle(directory, f"system.slice:holdfast-test:{name}", devices, cpus)
        try:
            self.run(*runc, "run", "-d", "--bundle", directory, name)
            yield Container(self, f"holdfast-test-{name}.scope", runc, name)
        finally:
            self.run(*runc, "delete", "-f", name, check=False)


class Container:
    """A running container; `pid` and `cgroup` are those of this machine, `unit` is systemd's name for it."""

    def __init__(self, host: Systemd, unit: str, runc: tuple, name: str):
        self.host, self.unit, self.runc, self.name = host, unit, runc, name
        self.cgroup = host.cgroup / "system.slice" / unit
        self.pid = int((self.cgroup / "cgroup.procs").read_text().split()[0])
        self.inner_pid = json.loads(self.call("state", name))["pid"]
        self.unit_file = host.root / "run/systemd/transient" / unit

    def call(self, *arguments: str) -> str:
        return self.host.run(*self.runc, *arguments).stdout

    def show(self, name: str) -> list[str]:
        """What systemd holds for a property of the scope: DeviceAllow has one line for each entry."""
        return self.host.systemctl("show", self.unit, f"--property={name}", "--value").splitlines()

    def opens(self, device: tuple[int, int] = GPU) -> str:
        """From inside the container: ENXIO (of the GPU, which has no driver) or ok says that the cgroup lets it through."""
        return errno_of_open(self.cgroup, f"/proc/{self.pid}/root{NODES[device]}")


def make_bundle(directory: pathlib.Path, cgroups_path: str, devices: list[tuple[int, int]], cpus: str = "") -> None:
    """busybox that sleeps, with nodes that only `devices` can allow."""
    rootfs = directory / "rootfs"
    for entry in ("bin", "dev", "proc", "sys", "tmp"):
        (rootfs / entry).mkdir(parents=True)
    shutil.copy(which("busybox"), rootfs / "bin/busybox")
    for numbers, path in NODES.items():
        os.mknod(f"{rootfs}{path}", 0o20666, os.makedev(*numbers))
    listed = [{"path": NODES[major, minor], "type": "c", "major": major, "minor": minor} for major, minor in devices]
    rules = [{"allow": True, "type": "c", "major": major, "minor": minor, "access": "rw"} for major, minor in devices]
    config = {
        "ociVersion": "1.0.2",
        "process": {"cwd": "/", "args": ["/bin/busybox", "sleep", "300"], "user": {"uid": 0, "gid": 0}},
        "root": {"path": "rootfs"},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "linux": {
            "cgroupsPath": cgroups_path,
            "namespaces": [{"type": kind} for kind in ("mount", "pid", "ipc", "uts")],
            "devices": listed,
            "resources": {"devices": [{"allow": False, "access": "rwm"}, *rules]},
        },
    }
    if cpus:
        config["linux"]["resources"]["cpu"] = {"cpus": cpus}
    (directory / "config.json").write_text(json.dumps(config))


def only_child(process: subprocess.Popen, seconds: float = 10) -> int:
    """The pid, on this machine, of what `unshare --fork` made."""
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        if found := pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            return int(found[0])
        time.sleep(0.005)
    raise RuntimeError("unshare started nothing")


@contextlib.contextmanager
def scratch_groups(version: str):
    """An empty cgroup below our own in every hierarchy that the inner systemd is to see, by its name in /proc/self/cgroup."""
    with contextlib.ExitStack() as stack:
        groups = {}
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, name, path = line.split(":", 2)
            if name == "" or version == "v1":
                mount = V2 if name == "" else V2.parent / name.removeprefix("name=")
                groups[name] = pathlib.Path(tempfile.mkdtemp(prefix="hf-systemd-", dir=mount / path.lstrip("/")))
                stack.callback(remove_cgroup, groups[name])
        for path in groups.values():
            if (path / "cpuset.cpus").exists() and (path / "cgroup.clone_children").exists():  # v1
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (path / file).write_text((path.parent / file).read_text())
                (path / "cgroup.clone_children").write_text("1")
        yield groups


@contextlib.contextmanager
def systemd_host(version: str = "v2"):
    """Boots systemd on pure cgroup v2, or with devices on v1; all of it goes with its PID 1, which dies with this process too."""
    with tempfile.TemporaryDirectory(prefix="hf-systemd-") as name, contextlib.ExitStack() as stack:
        directory = pathlib.Path(name)
        (directory / "units").mkdir()
        for unit, text in UNITS.items():
            (directory / "units" / unit).write_text(text)
        groups = stack.enter_context(scratch_groups(version))
        environment = {
            "GROUPS_TO_JOIN": " ".join(map(str, groups.values())),
            "V1_HIERARCHIES": " ".join(filter(None, groups)),
            "DIRECTORY": name,
            "SYSTEMD": str(SYSTEMD),
        }
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", "sh", "-ec", BOOT]
        log = stack.enter_context(open(directory / "log", "w"))
        process = subprocess.Popen(command, env=os.environ | environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        stack.callback(process.wait)
        stack.callback(process.kill)
        host = Systemd(only_child(process), groups, directory)
        host.wait()
        yield host
