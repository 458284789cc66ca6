#!/usr/bin/env python3
"""An image's loader cache makes the runtime, which is root of the host, use much memory or time before the container exists.

The attacker is the author of an image. Its /etc/ld.so.cache has as many entries as fit, which share one long path, or
have the name of a library of the driver and lead through chains of symlinks. The runtime must not edit such a cache,
but leave it to the hook, whose sandbox has a deadline; and the container has its GPU. Just below the limits it needs
little memory.
"""

import os
import pathlib
import re
import struct

from attack_support import Box, RuntimeCase
from support import run_suite

HEADER, ENTRY = 48, 24
MOST_SECONDS = 3  # of processor time until the runtime leaves such a container to runc
MOST_MEMORY = 56  # MiB; a cache of 16 MiB is in memory twice
LIBRARY = 0x0303  # of glibc, for x86-64


def make_cache(count: int, name: bytes, paths: list[bytes], hardware: int = 0) -> bytes:
    """As glibc's newer format: all entries have the same name; the paths are used in turn."""
    texts = name + b"\0"
    offsets = []
    for path in paths:
        offsets.append(HEADER + count * ENTRY + len(texts))
        texts += path + b"\0"
    entries = b"".join(struct.pack("=iIIIQ", LIBRARY, HEADER + count * ENTRY, offsets[i % len(paths)], 0, hardware) for i in range(count))
    header = b"glibc-ld.so.cache1.1" + struct.pack("=II", count, len(texts)) + b"\2"
    return header.ljust(HEADER, b"\0") + entries + texts


# Stands in for runc. The runtime waits for it, and has done everything else.
MEASURE = """#!/bin/sh
case "$*" in *create*) cat /proc/$PPID/status /proc/$PPID/stat >{file};; esac
exec runc "$@"
"""


class LoaderCache(RuntimeCase):
    def measure(self, box: Box) -> pathlib.Path:
        """The file that will say what the runtime has used for this container."""
        program, file = box.directory / "measure", box.directory / "measured"
        program.write_text(MEASURE.format(file=file))
        program.chmod(0o755)
        self.config(box.stage, f"programs: [{program}]")
        return file

    def peak(self, cache: bytes) -> int:
        """The most memory that the runtime had, in MiB, with a container that it needs no hook for."""
        box = self.image(has_cache=False)
        if cache:
            (box.directory / "rootfs/etc/ld.so.cache").write_bytes(cache)
        measured = self.measure(box)
        box.start()
        self.assertNotIn("hooks", box.edited(), "the runtime did not edit it")
        self.check_gpu(box)
        return int(re.search(r"^VmHWM:\s*(\d+) kB$", measured.read_text(), re.MULTILINE)[1]) // 1024

    def test_memory_just_below_the_limits(self):
        usual = self.peak(b"")
        for count, length in ((65_000, 1), (3_900, 4_000)):
            with self.subTest(count):
                grown = self.peak(make_cache(count, b"l", [b"/" + b"p" * length])) - usual
                self.assertLess(grown, MOST_MEMORY)

    def check(self, cache: bytes, *, directories: int = 0, loop: bool = False) -> None:
        box = self.image(has_cache=False)
        rootfs = box.directory / "rootfs"
        (rootfs / "etc/ld.so.cache").write_bytes(cache)
        self.make_chains(rootfs, directories)
        if loop:
            (rootfs / "loop").mkdir()
            (rootfs / "loop/a").symlink_to("/loop/.." * 500 + "/loop")
        measured = self.measure(box)
        box.start()
        self.assertLess(self.seconds(measured), MOST_SECONDS)
        hooks = box.edited()["hooks"]["createContainer"]
        self.assertIn("--directory", hooks[0]["args"], "the runtime edited it")
        self.check_gpu(box)

    def seconds(self, measured: pathlib.Path) -> float:
        """Its own, whatever else this machine does: the 14th and 15th field of /proc/PID/stat, after the name."""
        user, system = measured.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def make_chains(self, rootfs: pathlib.Path, count: int) -> None:
        for number in range(count):
            directory = rootfs / f"chain{number}"
            directory.mkdir()
            (directory / "0").mkdir()
            for link in range(30):
                (directory / str(link + 1)).symlink_to("./" * 500 + str(link))

    def test_entries_that_share_a_path(self):
        for length in (4000, 100_000):
            with self.subTest(length):
                self.check(make_cache(40_000, b"libx.so", [b"/" + b"p" * length]))

    def test_many_entries_with_the_name_of_a_library_of_the_driver(self):
        paths = [b"/chain%d/30/libcuda.so.1" % number for number in range(100)]
        self.check(make_cache(200_000, b"libcuda.so.1", paths), directories=100)

    def test_many_entries_that_may_be_left_from_another_driver(self):
        paths = [b"/usr/local/cuda/compat/lib%d.so" % number for number in range(60_000)]
        self.check(make_cache(60_000, b"lib.so", paths))

    def test_entries_for_some_processors_at_paths_of_many_symlinks(self):
        # Each lookup reads 20 symlinks of 4 KiB, and each missing part of each path is one.
        paths = [b"/loop" + b"/a" * 20 + b"/%d/b/c/d/e/f/libcuda.so.1" % number for number in range(250)]
        self.check(make_cache(250, b"libcuda.so.1", paths, hardware=1), loop=True)


if __name__ == "__main__":
    run_suite()
