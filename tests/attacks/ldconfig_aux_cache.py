#!/usr/bin/env python3
"""An image leaves its root through /proc/1/root while the hook runs ldconfig, and creates a file of root on the host.

The attacker is the author of an image: /var/cache/ldconfig (or a directory above it) is a symlink to
/proc/1/root/DIR, where pid 1 still has the host's root, and a library's SONAME is a text with newlines that ldconfig
writes into its auxiliary cache. Nothing may appear in DIR, neither by that symlink nor through the host's /proc as a
volume nor through a volume itself.
"""


from attack_support import Box, RuntimeCase, add_proc_of_host, add_volume, listing, make_library, make_victim
from gpu_stage import LIBRARIES
from support import run_suite

SUDOERS = "\nnobody ALL=(ALL) NOPASSWD: ALL\n"


class AuxCache(RuntimeCase):
    def plant(self, box: Box, link: str, target: str) -> None:
        rootfs = box.directory / "rootfs"
        make_library(rootfs / LIBRARIES.lstrip("/") / "libplanted.so", SUDOERS)
        place = rootfs / link
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def check(self, box: Box, link: str, target: str) -> None:
        victim = make_victim(box) / "directory"
        before = listing(victim)
        self.plant(box, link, target.format(victim=victim))
        done = self.attempt(box)
        self.check_untouched(victim, before, f"{link} -> {target}: {done.stderr}")
        box.delete()

    def check_pid_1(self, version: str, runtime: str) -> None:
        self.check(self.image(version, runtime), "var/cache/ldconfig", "/proc/1/root{victim}")

    def test_runc_v1(self):
        self.check_pid_1("v1", "runc")

    def test_runc_v2(self):
        self.check_pid_1("v2", "runc")

    def test_crun_v1(self):
        self.check_pid_1("v1", "crun")

    def test_crun_v2(self):
        self.check_pid_1("v2", "crun")

    def test_directories_above_it(self):
        """ldconfig creates the directories that are missing."""
        for link in ("var", "var/cache"):
            with self.subTest(link):
                self.check(self.image(), link, "/proc/1/root{victim}")

    def test_the_hosts_proc_as_a_volume(self):
        box = self.image()
        self.check(box, "var/cache/ldconfig", add_proc_of_host(box) + "{victim}")

    def test_a_volume(self):
        box = self.image()
        volume = add_volume(box)
        before = listing(volume)
        self.plant(box, "var/cache/ldconfig", "/volume")
        done = self.attempt(box)
        self.check_untouched(volume, before, done.stderr)

    def test_an_image_without_such_a_link_has_its_gpu(self):
        box = self.image()
        (box.directory / "rootfs/var/cache/ldconfig").mkdir(parents=True)
        make_library(box.directory / "rootfs/opt/libhonest.so.1", "libhonest.so.1")
        self.check_gpu(box.start())


if __name__ == "__main__":
    run_suite()
