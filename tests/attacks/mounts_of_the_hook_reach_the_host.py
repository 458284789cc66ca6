#!/usr/bin/env python3
"""A container with shared mount propagation makes the mounts of the hook appear on the host.

The attacker may start containers whose root file system has shared propagation (linux.rootfsPropagation, as "docker
run -v …:rshared" sets it) and that see the host's /proc. The hook mounts a tmpfs and covers a file of /proc in the
container's mount namespace, which is then a peer of the host's. No mount may appear on the host, not even for a
moment.
"""

import contextlib
import os
import select
import threading
from collections.abc import Iterator

from attack_support import Box, RuntimeCase
from support import run_suite

PARAMETERS = "/proc/driver/nvidia/params"
RUNTIMES = ("/runc", "/crun")  # They bind their own program for a moment.


class MountWatch:
    """Every mount that appears in the mount namespace of a process: poll(2) reports each change of its mountinfo."""

    def __init__(self, pid: int):
        self.file = os.open(f"/proc/{pid}/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self.before = self.read()
        self.seen: set[str] = set()
        self.ends = False
        self.thread = threading.Thread(target=self.watch)

    def read(self) -> set[str]:
        os.lseek(self.file, 0, os.SEEK_SET)
        text = b""
        while part := os.read(self.file, 1 << 16):
            text += part
        return set(text.decode().splitlines())

    def watch(self) -> None:
        changes = select.poll()
        changes.register(self.file, select.POLLPRI)
        while not self.ends:
            if changes.poll(20):
                self.seen |= self.read() - self.before

    def found(self) -> list[str]:
        """Mount points, without those of the runtimes."""
        lines = [line.split() for line in self.seen | (self.read() - self.before)]
        return sorted({fields[4] for fields in lines if not fields[3].endswith(RUNTIMES)})


@contextlib.contextmanager
def watching(pid: int) -> Iterator[MountWatch]:
    watch = MountWatch(pid)
    watch.thread.start()
    try:
        yield watch
    finally:
        watch.ends = True
        watch.thread.join()
        os.close(watch.file)


class Propagation(RuntimeCase):
    def container(self, runtime: str, propagation: str) -> Box:
        """It sees the host's /proc. The bundle is on a separate mount, because runc makes the parent mount private."""
        if runtime == "crun":
            self.need_crun("v1")
        box = self.box()
        self.config(box.stage, f"programs: [{runtime}]")
        box.spec["mounts"][0] = {"destination": "/proc", "type": "bind", "source": "/proc", "options": ["rbind"]}
        box.spec["linux"]["namespaces"] = [{"type": "mount"}]
        box.spec["linux"]["rootfsPropagation"] = propagation
        box.spec["process"]["capabilities"] = {kind: ["CAP_MKNOD"] for kind in ("bounding", "effective", "permitted")}  # it needs the hook
        steps = (f"mount --bind {box.directory} {box.directory}", "mount --make-rshared /")
        box.place = self.enterContext(box.stage.changed(*steps))
        return box

    def check(self, runtime: str, propagation: str) -> None:
        box = self.container(runtime, propagation).ask("0")
        host = box.place.holder.pid
        with watching(host) as watch:
            done = self.attempt(box)
            self.assertEqual(watch.found(), [], done.stderr)
        with open(f"/proc/{host}/root{PARAMETERS}") as file:
            self.assertIn("ModifyDeviceFiles: 1", file.read(), "the host's own parameters are covered")
        box.delete()

    def test_runc(self):
        for propagation in ("shared", "rshared"):
            with self.subTest(propagation):
                self.check("runc", propagation)

    def test_crun(self):
        for propagation in ("shared", "rshared"):
            with self.subTest(propagation):
                self.check("crun", propagation)

    def test_without_a_gpu_nothing_appears_either(self):
        """Shows that mounts found by the other tests would be those of the hook."""
        box = self.container("runc", "rshared").write()
        with watching(box.place.holder.pid) as watch:
            box.start()
            self.assertEqual(watch.found(), [])

    def test_the_watch_sees_a_mount_that_is_removed_at_once(self):
        box = self.container("runc", "rshared").write()
        with watching(box.place.holder.pid) as watch:
            for _ in range(10):
                box.place.run("sh", "-c", "mount -t tmpfs none /mnt && umount /mnt")
            self.assertEqual(watch.found(), ["/mnt"])

    def test_a_container_with_default_propagation_has_its_gpu(self):
        box = self.container("runc", "rslave").ask("0")
        with watching(box.place.holder.pid) as watch:
            box.start()
            self.assertEqual(watch.found(), [])
        self.check_opens(box)
        self.assertTrue(box.inside(PARAMETERS).read_text().startswith("ModifyDeviceFiles: 0\n"))


if __name__ == "__main__":
    run_suite()
