#!/usr/bin/env python3
"""An image has symlinks to targets outside its root where the runtime and the hook create files.

The attacker is the author of an image: /etc, library directories, the loader's cache and the names of the driver's
libraries are symlinks with absolute targets, with more ".." than there are directories, or through /proc. No file of
the host may be created, changed or replaced. Symlinks within the image are followed as the container would follow
them.
"""

import os

from attack_support import Box, RuntimeCase, add_proc_of_host, listing, make_victim
from gpu_stage import LIBRARIES, VERSION
from support import run_suite

LIBRARY_DIRECTORY = LIBRARIES.lstrip("/")
UP = "../" * 20
DIRECTORIES = ("etc", "usr", "usr/lib", LIBRARY_DIRECTORY, "usr/bin", "usr/local/cuda/compat")
FILES = (
    "etc/ld.so.cache", "etc/ld.so.cache~", "etc/ld.so.conf", "usr/bin/nvidia-smi", f"{LIBRARY_DIRECTORY}/libcuda.so",
    f"{LIBRARY_DIRECTORY}/libcuda.so.1", f"{LIBRARY_DIRECTORY}/libcuda.so.{VERSION}",
)  # fmt: skip


class Symlinks(RuntimeCase):
    def check(self, links: dict[str, str], runtime: str = "runc", by_volume: bool = False) -> None:
        """Targets may name the host's directory as {victim}."""
        box = self.image(runtime=runtime, has_cache=False)
        root = add_proc_of_host(box) if by_volume else "/proc/1/root"
        victim = make_victim(box)
        before = listing(victim)
        for link, target in links.items():
            self.link(box, link, target.format(victim=victim, up=UP, root=root))
        done = self.attempt(box)
        self.check_untouched(victim, before, done.stderr)
        box.delete()

    def link(self, box: Box, link: str, target: str) -> None:
        path = box.directory / "rootfs" / link
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            path.rmdir()
        path.symlink_to(target)

    def test_directories(self):
        """Each by another kind of target."""
        ways = ("{victim}", "{up}{victim}", "{root}{victim}", "/proc/self/root{victim}")
        for number, link in enumerate(DIRECTORIES):
            with self.subTest(link):
                self.check({link: ways[number % len(ways)] + "/directory"})

    def test_etc_through_proc(self):
        self.check({"etc": "{root}{victim}/directory"})
        self.check({"etc": "{root}{victim}/directory"}, by_volume=True)

    def test_files(self):
        """All of them at once: none of these is an error."""
        for runtime, way in (("runc", "{up}{victim}/file"), ("runc", "{victim}/new"), ("crun", "{up}{victim}/file")):
            with self.subTest(runtime, way=way):
                self.check(dict.fromkeys(FILES, way), runtime=runtime)

    def test_files_through_proc(self):
        self.check(dict.fromkeys(FILES[:3], "{root}{victim}/file"))
        self.check(dict.fromkeys(FILES[4:6], "{root}{victim}/sh"))

    def test_loops(self):
        for link, target in (("etc", "etc"), ("etc/ld.so.cache", "/proc/self/fd/0")):
            with self.subTest(link):
                self.check({link: target})

    def test_symlinks_within_the_image_are_followed(self):
        box = self.image(has_cache=False)
        (box.directory / "rootfs/real/etc").mkdir(parents=True)
        self.link(box, "etc", "real/etc")
        self.link(box, "usr", "../../real")
        self.check_gpu(box.start())
        self.assertEqual(sorted(os.listdir(box.directory)), ["config.json", "rootfs"])


if __name__ == "__main__":
    run_suite()
