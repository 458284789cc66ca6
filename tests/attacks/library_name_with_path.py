#!/usr/bin/env python3
"""An image makes the hook's ldconfig create or replace symlinks on the host.

The attacker is the author of an image. A library's SONAME is a path through /proc/1/root to a file of the host, or
the loader's configuration or a library directory of the image points to a host directory that way; where the host's
/proc is a volume of the container, the paths go through there. No symlink of the host may be created or changed.
"""

import pathlib

from attack_support import Box, RuntimeCase, add_proc_of_host, listing, make_library, make_victim
from gpu_stage import LIBRARIES
from support import run_suite

UP = "../" * LIBRARIES.strip("/").count("/") + "../"


class LibraryName(RuntimeCase):
    def arrange(self, runtime: str, through: str) -> tuple[Box, str, pathlib.Path]:
        """The image, the host's root as seen from it, and a host directory with a library that was linked by hand."""
        box = self.image(runtime=runtime)
        root = add_proc_of_host(box) if through == "volume" else "/proc/1/root"
        victim = make_victim(box)
        make_library(victim / "libhost.so.2", "libhost.so")
        (victim / "libhost.so.1").write_bytes((victim / "libhost.so.2").read_bytes())
        (victim / "libhost.so").symlink_to("libhost.so.1")
        return box, root, victim

    def check(self, fill, *more: tuple[str, str]) -> None:
        for runtime, through in (("runc", "pid 1"), ("runc", "volume"), *more):
            with self.subTest(runtime, through=through):
                box, root, victim = self.arrange(runtime, through)
                before = listing(victim)
                fill(box.directory / "rootfs", f"{root}{victim}")
                done = self.attempt(box)
                self.check_untouched(victim, before, done.stderr)
                box.delete()

    def test_a_library_called_like_a_symlink_of_the_host(self):
        def fill(rootfs: pathlib.Path, outside: str) -> None:
            make_library(rootfs / LIBRARIES.lstrip("/") / "libevil.so", f"{UP}{outside.lstrip('/')}/sh")

        self.check(fill, ("crun", "pid 1"))

    def test_a_library_called_like_a_file_that_the_host_lacks(self):
        def fill(rootfs: pathlib.Path, outside: str) -> None:
            make_library(rootfs / "lib/libevil.so", f"..{outside}/directory/new")

        self.check(fill)

    def test_a_directory_of_the_host_in_the_loaders_configuration(self):
        def fill(rootfs: pathlib.Path, outside: str) -> None:
            (rootfs / "etc/ld.so.conf").write_text("include /etc/ld.so.conf.d/*.conf\n")
            (rootfs / "etc/ld.so.conf.d").mkdir()
            (rootfs / "etc/ld.so.conf.d/evil.conf").write_text(f"{outside}\n")

        self.check(fill)

    def test_a_directory_of_the_host_in_place_of_a_library_directory(self):
        def fill(rootfs: pathlib.Path, outside: str) -> None:
            (rootfs / "lib").symlink_to(outside)

        self.check(fill)

    def test_a_configuration_file_of_the_host_as_a_list_of_directories(self):
        """The file's lines would end up in a cache that the container reads."""
        box, root, victim = self.arrange("runc", "pid 1")
        (victim / "list.conf").write_text(f"{root}{victim}\n")
        before = listing(victim)
        (box.directory / "rootfs/etc/ld.so.conf").write_text(f"include {root}{victim}/*.conf\n")
        done = self.attempt(box)
        self.check_untouched(victim, before, done.stderr)
        cache = box.directory / "rootfs/etc/ld.so.cache"
        self.assertNotIn(b"libhost", cache.read_bytes() if cache.exists() else b"")

    def test_an_image_with_libraries_of_its_own_has_its_gpu(self):
        box = self.image()
        rootfs = box.directory / "rootfs"
        make_library(rootfs / "opt/lib/libown.so.1.2", "libown.so.1")
        (rootfs / "opt/lib/libown.so.1").symlink_to("libown.so.1.2")
        (rootfs / "etc/ld.so.conf").write_text("/opt/lib\n")
        self.check_gpu(box.start())
        self.assertIn(b"/opt/lib/libown.so.1\0", (rootfs / "etc/ld.so.cache").read_bytes())


if __name__ == "__main__":
    run_suite()
