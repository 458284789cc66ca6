#!/usr/bin/env python3
"""An image's /etc is a symlink into a volume, and the hook writes the loader's cache there.

The attacker is the author of an image that a user starts with a directory of the host as a volume: /etc (or a
directory above the cache) is a symlink into it. The hook, which is root of the host, must write no file into the
volume.
"""


from attack_support import Box, RuntimeCase, add_volume, listing
from support import run_suite


class EtcInVolume(RuntimeCase):
    def check(self, runtime: str, target: str) -> None:
        box = self.image(runtime=runtime, has_cache=False)
        volume = add_volume(box)
        (volume / "etc").mkdir()
        before = listing(volume)
        self.link(box, target)
        done = self.attempt(box)
        self.check_untouched(volume, before, done.stderr)
        box.delete()

    def link(self, box: Box, target: str) -> None:
        etc = box.directory / "rootfs/etc"
        etc.rmdir()
        etc.symlink_to(target)

    def test_runc(self):
        for target in ("/volume", "/volume/etc", "volume/missing", "proc/self/root/volume"):
            with self.subTest(target):
                self.check("runc", target)

    def test_crun(self):
        self.check("crun", "/volume")

    def test_a_cache_in_the_volume(self):
        """The cache itself and the files beside it are symlinks."""
        box = self.image(has_cache=False)
        volume = add_volume(box)
        (volume / "cache").write_text("of the user")
        before = listing(volume)
        for name in ("ld.so.cache", "ld.so.cache~", "ld.so.conf"):
            (box.directory / "rootfs/etc" / name).symlink_to("/volume/cache")
        done = self.attempt(box)
        self.check_untouched(volume, before, done.stderr)

    def test_a_container_with_a_volume_has_its_gpu(self):
        box = self.image(has_cache=False)
        volume = add_volume(box)
        before = listing(volume)
        self.check_gpu(box.start())
        self.check_untouched(volume, before, "the volume belongs to the user")

    def test_an_etc_elsewhere_in_the_image_is_no_attack(self):
        """Some images keep it below /usr."""
        box = self.image(has_cache=False)
        (box.directory / "rootfs/usr/etc").mkdir(parents=True)
        self.link(box, "usr/etc")
        self.check_opens(box.start())


if __name__ == "__main__":
    run_suite()
