#!/usr/bin/env python3
"""Suspicion: a container makes the guard create a device node in a directory of the host.

The attacker is root in a container that is owed a GPU and has lost its node. Its first process has changed its root
to a volume which is a directory of the host, or its /dev is such a volume, or it lives in the host's mount namespace.
No device node may appear in any of these directories, where a user of the host could open it. In a container with a
/dev of its own it is created.
"""

import json
import os
import pathlib
import subprocess
from unittest import mock

from attack_support import GuardCase, Scripted, container_id, heal_only
import engines
from guarded import eventually, ledger_entry, wait_for_our_turn
from support import V2, holdfast, remove_cgroup, run_suite

NODE = f"/dev/hf-attack-{os.getpid()}"  # The host has no such node.
DEVICE = {NODE: (195, 0)}
OWN_DEV = "mount -t tmpfs -o mode=755 none /dev"


def setUpModule():
    wait_for_our_turn()


class NodeInVolume(GuardCase):
    def volume(self) -> pathlib.Path:
        """A directory of the host that can serve as a root directory."""
        path = self.directory()
        (path / "dev").mkdir()
        (path / "bin").mkdir()
        subprocess.run(["cp", engines.program("busybox"), path / "bin"], check=True)
        return path

    def hostile(self, steps: list[str], *spaces: str) -> Scripted:
        container = Scripted(V2, container_id(), steps, spaces=spaces or ("--mount",))
        self.addCleanup(remove_cgroup, container.cgroup)
        self.addCleanup(container.close)
        self.addCleanup(pathlib.Path(NODE).unlink, missing_ok=True)
        self.enterContext(ledger_entry(container.id, DEVICE, cgroup=f"/{container.id}"))
        return container

    def check_nothing_created(self, container: Scripted, directory: pathlib.Path) -> None:
        other = self.owed(V2)
        daemon = self.guard(config=heal_only(container.id, other.id), containers=1)
        self.check_guarded(other)
        eventually(lambda: daemon.records(container.id, action="mended"), 1.5)
        self.assertEqual(device_nodes(directory), [], f"by the daemon: {daemon.records(container.id)}")
        daemon.stop()
        done = holdfast("heal", container.id)
        self.assertEqual(device_nodes(directory), [], f"by heal: {done.stdout}{done.stderr}")

    def test_a_root_changed_to_a_volume(self):
        volume = self.volume()
        steps = [OWN_DEV, "mkdir /dev/volume", f"mount --bind {volume} /dev/volume", "echo ready"]
        container = self.hostile([*steps, "exec chroot /dev/volume /bin/busybox sleep 600"])
        self.assertTrue(eventually(lambda: pathlib.Path(f"/proc/{container.pid}/root/bin/busybox").exists()))
        self.check_nothing_created(container, volume)

    def test_a_volume_for_dev(self):
        volume = self.volume()
        container = self.hostile([f"mount --bind {volume}/dev /dev", "echo ready", "exec sleep 600"])
        self.check_nothing_created(container, volume)

    def test_a_volume_below_dev(self):
        """The node is in a directory below /dev, which is a volume."""
        volume = self.volume()
        steps = [OWN_DEV, "mkdir /dev/dri", f"mount --bind {volume}/dev /dev/dri"]
        container = self.hostile([*steps, "echo ready", "exec sleep 600"])
        self.enterContext(ledger_entry(container.id, {f"/dev/dri/{NODE[5:]}": (195, 0)}, cgroup=f"/{container.id}"))
        self.check_nothing_created(container, volume)

    def test_the_mount_namespace_of_the_host(self):
        container = self.hostile(["echo ready", "exec sleep 600"], "--ipc")
        self.check_nothing_created(container, pathlib.Path("/dev"))

    def test_a_container_with_its_own_dev_has_its_node_created(self):
        with mock.patch("engines.write_bundle", write_bundle):
            container = self.start(engines.oci, "v2", "runc")
        node = pathlib.Path(f"/proc/{container.pid}/root/dev/nvidia0")
        node.unlink()
        self.guard(config=heal_only(container.id), containers=1)
        self.assertTrue(eventually(node.exists, 60), "a node that is missing is created")
        self.assertTrue(node.is_char_device())


def write_bundle(directory: pathlib.Path, cgroup: str, gpu: bool, write=engines.write_bundle) -> None:
    """Like engines: /dev is a separate file system of the container."""
    write(directory, cgroup, gpu)
    config = json.loads((directory / "config.json").read_text())
    own = {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]}
    config["mounts"].append(own)
    (directory / "config.json").write_text(json.dumps(config))


def device_nodes(directory: pathlib.Path) -> list[str]:
    """In /dev only that of this test, in other directories all."""
    found = [path for path in directory.rglob("*") if path.is_char_device() or path.is_block_device()]
    return [str(path) for path in found if directory != pathlib.Path("/dev") or path.name == NODE[5:]]


if __name__ == "__main__":
    run_suite(verbosity=1)
