"""A whole machine in namespaces: this host's files under an overlay, a real systemd, docker, and a stand-in GPU whose driver is installed.

Everything may be written in there, as on the machine of a user: /usr, /etc and /var are the overlay's, and gone with it.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator

import engines
import gpu_stage
from systemd_host import SYSTEMD, UNITS, Systemd, only_child, scratch_groups

HOME = "/root/holdfast"  # the user's checkout
PROGRAMS = ("systemctl", "dbus-daemon", "dockerd", "containerd", "runc", "busybox", "bash", "cc", "ldconfig", "unshare", "nsenter", "setpriv", "ip")

# The overlay's upper directory is on a tmpfs, as the lower one is the host's own root. No submount of the host is in it.
BOOT = r"""
for group in $GROUPS_TO_JOIN; do echo 0 >"$group/cgroup.procs"; done
exec unshare --mount --cgroup --uts --ipc --net sh -ec '
mount -t tmpfs -o mode=755 tmpfs "$DIRECTORY/over"
mkdir "$DIRECTORY/over/upper" "$DIRECTORY/over/work" "$DIRECTORY/over/root"
mount -t overlay -o "lowerdir=/,upperdir=$DIRECTORY/over/upper,workdir=$DIRECTORY/over/work" overlay "$DIRECTORY/over/root"
cd "$DIRECTORY/over/root"
rm -rf etc/holdfast etc/cdi etc/docker etc/containerd etc/systemd/system/* lib/systemd/system/*.wants
cp -a "$DIRECTORY/files/." .
for path in dev run tmp var/lib; do mount -t tmpfs -o mode=755 tmpfs $path; done
chmod 1777 tmp
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t bpf bpf sys/fs/bpf
if [ -z "$V1_HIERARCHIES" ]; then
    mount -t cgroup2 cgroup2 sys/fs/cgroup
else
    mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
    for name in $V1_HIERARCHIES; do
        mkdir "sys/fs/cgroup/${name#name=}"
        mount -t cgroup -o "$name" cgroup "sys/fs/cgroup/${name#name=}"
    done
fi
mkdir dev/pts dev/shm dev/mqueue dev/char run/dbus run/lock
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
while read -r path major minor; do mknod -m 666 "dev/$path" c "$major" "$minor"; done <"$DIRECTORY/nodes"
mount --bind "$DIRECTORY/proc/driver" proc/driver
mount --bind "$DIRECTORY/proc/devices" proc/devices
# A file of procfs with our text: the runtime covers only a file of procfs within a container.
bash -c "exec -a \"\$(cat $DIRECTORY/proc/driver/nvidia/params; echo .)\" sleep infinity" &
until grep -q ModifyDeviceFiles "proc/$!/cmdline"; do sleep 0.01; done
mount --bind "proc/$!/cmdline" proc/driver/nvidia/params
tr -d - </proc/sys/kernel/random/uuid >etc/machine-id
ip link set lo up
mkdir host
pivot_root . host
umount --lazy /host
rmdir /host
exec env -i container=holdfast-test PATH=/usr/sbin:/usr/bin:/sbin:/bin "$SYSTEMD" --system --unit=holdfast-test.target
'
"""

BARE = "[Unit]\nDefaultDependencies=no\n"
# Units of the docs depend on these targets; on this machine nothing hangs on them.
TARGETS = ("sysinit", "basic", "multi-user", "shutdown", "network-online")
DOCKER = """[Unit]
Requires=dbus.service
After=dbus.service
[Service]
Type=notify
ExecStart=/usr/sbin/dockerd
ExecReload=/bin/kill -s HUP $MAINPID
Delegate=yes
KillMode=process
"""
CONTAINERD = "[Service]\nType=notify\nExecStart=/usr/bin/containerd\nDelegate=yes\nKillMode=process\n"
# systemd mounts a new /proc for a unit with ProtectKernelTunables=: it gets the stand-in driver, too.
# No journal runs here: what a service says is kept in a file.
STAND_IN = "[Service]\nBindReadOnlyPaths=/proc/driver /proc/devices\nStandardOutput=append:/var/log/%n.log\nStandardError=inherit\n"
DROP_INS = {f"{name}.service.d/stand-in.conf": STAND_IN for name in ("holdfastd", "holdfast-kube")}
# What keeps docker off the network and from a file system that needs a disk.
DAEMON_JSON = """{
    "bridge": "none",
    "iptables": false,
    "ip6tables": false,
    "storage-driver": "vfs"
}
"""

# podman asks for limits and controllers that this machine may not have; crun needs more of them than runc.
CONTAINERS_CONF = """[containers]
netns = "none"
pids_limit = 0
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
events_logger = "file"
runtime = "runc"
"""
STORAGE_CONF = '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n'


def nodes() -> dict[str, tuple[int, int]]:
    plain = {f"/dev/{name}": (1, minor) for name, minor in engines.PLAIN_NODES.items()}
    return plain | {"/dev/tty": (5, 0), "/dev/fuse": (10, 229), "/dev/kvm": (10, 232)} | gpu_stage.NODES | gpu_stage.SECOND_NODE


def write_files(directory: pathlib.Path, checkout: dict[str, pathlib.Path]) -> None:
    """What is laid over the host's root: a driver, units, docker's config, and the user's checkout."""
    files = directory / "files"
    gpu_stage.make_driver(files)
    units = UNITS | {"docker.service": DOCKER, "containerd.service": CONTAINERD, **DROP_INS}
    units |= {f"{name}.target": BARE for name in TARGETS}
    texts = {f"etc/systemd/system/{name}": text for name, text in units.items()}
    texts |= {"etc/docker/daemon.json": DAEMON_JSON, "etc/containers/containers.conf": CONTAINERS_CONF, "etc/containers/storage.conf": STORAGE_CONF}
    for path, text in texts.items():
        place = files / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    engines.write_image(directory).rename(files / "etc/docker/image.tar")
    for path, source in checkout.items():
        place = files / HOME.lstrip("/") / path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, place) if source.is_dir() else shutil.copy(source, place)


class Machine(Systemd):
    """Booted; `shell` types lines on it."""

    def write(self, path: str, text: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@contextlib.contextmanager
def private_machine(version: str, checkout: dict[str, pathlib.Path]) -> Iterator[Machine]:
    """Goes with its PID 1, which dies with this process too. `checkout` are files of the user's checkout, by their path in it."""
    with tempfile.TemporaryDirectory(prefix="hf-machine-", dir="/tmp") as name, contextlib.ExitStack() as stack:
        directory = pathlib.Path(name)
        (directory / "over").mkdir()
        (directory / "proc").mkdir()
        gpu_stage.make_proc(directory / "proc")
        write_files(directory, checkout)
        (directory / "nodes").write_text("".join(f"{path[5:]} {major} {minor}\n" for path, (major, minor) in nodes().items()))
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
        machine = Machine(only_child(process), groups, directory)
        machine.wait()
        yield machine
