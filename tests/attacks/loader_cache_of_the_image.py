#!/usr/bin/env python3
"""An image's loader cache makes the runtime, which is root of the host, use much memory or time before the container exists.

The attacker is the author of an image. Its /etc/ld.so.cache has as many entries as fit, which share one long path, or
have the name of a library of the driver and lead through chains of symlinks. The runtime must not edit such a cache,
but leave it to the hook, whose sandbox has a deadline; and the container has its GPU.
"""

import pathlib
import struct
import unittest

from attack_support import Box, RuntimeCase

HEADER, ENTRY = 48, 24
LIBRARY = 0x0303  # of glibc, for x86-64


def make_cache(count: int, name: bytes, paths: list[bytes]) -> bytes:
    """As glibc's newer format: all entries have the same name; the paths are used in turn."""
    texts = name + b"\0"
    offsets = []
    for path in paths:
        offsets.append(HEADER + count * ENTRY + len(texts))
        texts += path + b"\0"
    entries = b"".join(struct.pack("=iIIIQ", LIBRARY, HEADER + count * ENTRY, offsets[i % len(paths)], 0, 0) for i in range(count))
    header = b"glibc-ld.so.cache1.1" + struct.pack("=II", count, len(texts)) + b"\2"
    return header.ljust(HEADER, b"\0") + entries + texts


class LoaderCache(RuntimeCase):
    def check(self, cache: bytes, *, directories: int = 0) -> None:
        box = self.image(has_cache=False)
        rootfs = box.directory / "rootfs"
        (rootfs / "etc/ld.so.cache").write_bytes(cache)
        self.make_chains(rootfs, directories)
        box.start()
        hooks = box.edited()["hooks"]["createContainer"]
        self.assertIn("--directory", hooks[0]["args"], "the runtime edited it")
        self.check_gpu(box)

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


if __name__ == "__main__":
    unittest.main()
