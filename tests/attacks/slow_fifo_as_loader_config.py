#!/usr/bin/env python3
"""An image has FIFOs and devices instead of files that the hook's programs read and write, so that they never end.

The attacker is the author of an image: the loader's configuration, its cache or a library is a FIFO, a device node
that never ends, a directory, or a file that includes itself. The start of the container must succeed or fail within a
bounded time, and no process may be left behind; the engine waits for it, and so do all users of the engine.
"""

import concurrent.futures
import os
import pathlib
import stat

from attack_support import Box, RuntimeCase, engines
from gpu_stage import LIBRARIES
from support import run_suite

LONGEST = 50  # seconds; the wait must not be endless
MEMORY = 1 << 30  # bytes for the container: a process that reads without end must not use up the host's memory


def make_fifo(path: pathlib.Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)


def make_zero(path: pathlib.Path) -> None:
    os.mknod(path, 0o644 | stat.S_IFCHR, os.makedev(1, 5))


def include_itself(path: pathlib.Path) -> None:
    path.write_text("include /etc/ld.so.conf\n" * 100)


ATTACKS = {
    "a FIFO as configuration": lambda rootfs: make_fifo(rootfs / "etc/ld.so.conf"),
    "a FIFO as included configuration": lambda rootfs: (
        (rootfs / "etc/ld.so.conf").write_text("include ld.so.conf.d/*\n"),
        make_fifo(rootfs / "etc/ld.so.conf.d/a.conf"),
    ),
    "a FIFO as cache": lambda rootfs: (make_fifo(rootfs / "etc/ld.so.cache"), make_fifo(rootfs / "etc/ld.so.cache~")),
    "a FIFO as auxiliary cache": lambda rootfs: make_fifo(rootfs / "var/cache/ldconfig/aux-cache"),
    "a FIFO as library": lambda rootfs: make_fifo(rootfs / LIBRARIES.lstrip("/") / "libfifo.so.1"),
    "a FIFO as library directory": lambda rootfs: make_fifo(rootfs / "usr/local/cuda/compat"),
    "a directory as configuration": lambda rootfs: (rootfs / "etc/ld.so.conf").mkdir(),
    "a directory as cache": lambda rootfs: (rootfs / "etc/ld.so.cache").mkdir(),
    "/dev/zero as configuration": lambda rootfs: make_zero(rootfs / "etc/ld.so.conf"),
    "a symlink to /dev/zero": lambda rootfs: (rootfs / "etc/ld.so.conf").symlink_to("/dev/zero"),
    "a configuration that includes itself": lambda rootfs: include_itself(rootfs / "etc/ld.so.conf"),
}  # fmt: skip


class OddFiles(RuntimeCase):
    def attack(self, name: str) -> Box:
        box = self.gpu()
        box.spec["linux"]["resources"]["memory"] = {"limit": MEMORY}
        ATTACKS[name](box.directory / "rootfs")
        return box.write()

    def test_every_start_ends(self):
        """All at once: mostly they wait."""
        boxes = {name: self.attack(name) for name in ATTACKS}
        with concurrent.futures.ThreadPoolExecutor(len(boxes)) as pool:
            starts = {name: pool.submit(box.create, timeout=LONGEST) for name, box in boxes.items()}
            concurrent.futures.wait(starts.values())
        for name, start in starts.items():
            with self.subTest(name):
                code = start.result().returncode  # raises if it took longer
                self.assertIn(code, (0, 1))
                self.check_processes(boxes[name], code)

    def check_processes(self, box: Box, code: int) -> None:
        """One if the container was created, none if it was refused."""
        members = set(engines.members({box.cgroup}))
        self.assertEqual(len(members), 1 if code == 0 else 0, members)

    def test_regular_files_are_read(self):
        box = self.image()
        directory = box.directory / "rootfs/etc/ld.so.conf.d"
        directory.mkdir()
        (directory / "a.conf").write_text("/opt/lib\n")
        (box.directory / "rootfs/etc/ld.so.conf").write_text("include /etc/ld.so.conf.d/*.conf\n")
        self.check_gpu(box.start())


if __name__ == "__main__":
    run_suite()
