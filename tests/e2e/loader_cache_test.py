#!/usr/bin/env python3
"""The loader's cache that holdfast-runtime writes, against ldconfig's: what `ldconfig -p` shows and what the image's own loader loads.

HOLDFAST_RELEASES="bullseye bookworm trixie" adds root file systems of these Debian releases (mmdebstrap, network).
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from support import HOLDFAST, Case, run_suite, which  # removes its argument from the command line first
from guarded import HOLDFASTD

SHIM = str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 and "/" in sys.argv[1] else "holdfast-runtime"

import boxes
from boxes import Box
from engines import TIMEOUT, Unavailable
from gpu_stage import CONFIG, DRIVER, LIBRARIES, VERSION, Stage

PROGRAMS = {"holdfast": str(HOLDFAST), "holdfastd": HOLDFASTD, "holdfast-runtime": SHIM}
LOADER = "lib64/ld-linux-x86-64.so.2"
COMPAT = "usr/local/cuda/compat"
STAGES: list[Stage] = []
ROOTS = pathlib.Path(HOLDFAST).parent / "roots"


def tearDownModule():
    for made in STAGES:
        made.close()


def make_library(file: pathlib.Path, name: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-shared", "-nostdlib", f"-Wl,-soname,{name}", "-x", "c", "/dev/null", "-o", str(file)], check=True, timeout=TIMEOUT)


def copy_program(root: pathlib.Path, program: str) -> None:
    """With the libraries it needs, each at the path where the loader found it."""
    found = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for path in [program, *re.findall(r"(/\S+) \(0x", found)]:
        (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path.lstrip("/"))


def update_cache(root: pathlib.Path) -> None:
    subprocess.run(["ldconfig", "-X", "-r", str(root)], check=True, timeout=TIMEOUT)


def hook_of(box: Box) -> list:
    return box.edited().get("hooks", {}).get("createContainer", [])


class Cache(Case):
    """A container with the C library of this machine."""

    def setUp(self):
        super().setUp()
        for name in ("runc", "busybox", "cc", "ldconfig", "ldd"):
            if not which(name):
                self.skipTest(f"needs {name}")
        if os.uname().machine != "x86_64":
            self.skipTest("the stage has a driver for x86-64")
        try:
            if not STAGES:
                STAGES.append(Stage("v1", PROGRAMS))
        except Unavailable as error:
            self.skipTest(str(error))
        self.stage = STAGES[0]
        self.enterContext(self.stage.config(CONFIG))

    def box(self) -> Box:
        box = self.enterContext(boxes.box(self.stage))
        self.root = box.directory / "rootfs"
        copy_program(self.root, "/bin/true")
        (self.root / "etc/ld.so.conf").write_text("/usr/local/lib\n/lib/x86_64-linux-gnu\n/usr/lib/x86_64-linux-gnu\n")
        return box

    def start(self, box: Box) -> None:
        box.ask("0").start()
        self.inside = pathlib.Path(f"/proc/{box.pid}/root")

    def listed(self, cache: pathlib.Path) -> dict[str, list[str]]:
        """Names with their paths, in the loader's order; one name for each directory."""
        done = subprocess.run(["ldconfig", "-p", "-C", str(cache)], capture_output=True, text=True, check=True)
        found: dict[str, list[str]] = {}
        for name, path in re.findall(r"^\t(\S+ \(.*\)) => (\S+)$", done.stdout, re.MULTILINE):
            found.setdefault(name, []).append(self.real(path))
        return found

    def real(self, path: str) -> str:
        """In its directory's own name: most releases have /lib and /usr/lib in one."""
        directory, _, file = path.rpartition("/")
        return os.path.realpath(f"{self.root}{directory}").removeprefix(str(self.root.resolve())) + f"/{file}"

    def loaded(self, box: Box) -> list[str]:
        """The files that the image's loader takes for these names."""
        names = ":".join(("libcuda.so.1", "libnvidia-ml.so.1", *self.more))
        done = box.call("exec", "--env", "LD_DEBUG=libs", "--env", f"LD_PRELOAD={names}", box.name, "/bin/true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("cannot be preloaded", done.stderr)
        found = {}
        for name, tried in re.findall(r"find library=(\S+) \[0\]; searching\n(.*?)\n\s*\d+:\s*\n", done.stderr, re.DOTALL):
            found[name] = self.real(re.findall(r"trying file=(\S+)", tried)[-1])
        return sorted(found.values())

    more: tuple[str, ...] = ()

    def check(self, box: Box, directories: tuple[str, ...] = (LIBRARIES,)) -> list[str]:
        """Both ways give the same."""
        self.start(box)
        self.assertEqual(hook_of(box), [], "no hook is needed")
        ours, loaded = self.listed(self.root / "etc/ld.so.cache"), self.loaded(box)
        command = ["ldconfig", "-X", "-r", str(self.inside), "-C", "/etc/ld.so.cache", "-f", "/etc/ld.so.conf", *directories]
        subprocess.run(command, check=True, timeout=TIMEOUT, capture_output=True)
        theirs = self.listed(self.inside / "etc/ld.so.cache")
        self.assertEqual({name: sorted(paths) for name, paths in ours.items()}, {name: sorted(paths) for name, paths in theirs.items()})
        self.assertEqual({name: paths[0] for name, paths in ours.items()}, {name: paths[0] for name, paths in theirs.items()})
        self.assertEqual(loaded, self.loaded(box))
        return loaded

    def test_the_c_library_of_this_machine(self):
        box = self.box()
        update_cache(self.root)
        loaded = self.check(box)
        self.assertIn(f"{LIBRARIES}/libcuda.so.1", loaded)

    def test_a_directory_with_dots_in_the_configuration(self):
        """ldconfig writes it into the cache as it is, in the image and in the hook."""
        box = self.box()
        self.more = ("libdots.so.1",)
        (self.root / "etc/ld.so.conf.d").mkdir()
        (self.root / "etc/ld.so.conf.d/dots.conf").write_text("/usr/local/bin/../lib64\n")
        with (self.root / "etc/ld.so.conf").open("a") as configuration:
            configuration.write("include /etc/ld.so.conf.d/*.conf\n")
        (self.root / "usr/local/bin").mkdir(parents=True)
        make_library(self.root / "usr/local/lib64/libdots.so.1", "libdots.so.1")
        update_cache(self.root)
        cache = self.root / "etc/ld.so.cache"
        self.assertIn(b"/usr/local/bin/../lib64/libdots.so.1", cache.read_bytes())
        self.assertIn("/usr/local/lib64/libdots.so.1", self.check(box))
        box.delete()
        cache.write_text("of another format")
        box.spec["process"]["env"] = box.spec["process"]["env"][:1]
        self.start(box)
        self.assertIn("--directory", hook_of(box)[0]["args"])
        self.assertIn(b"/usr/local/bin/../lib64/libdots.so.1", cache.read_bytes())
        self.assertIn("/usr/local/lib64/libdots.so.1", self.loaded(box))

    def test_libraries_for_some_processors(self):
        box = self.box()
        self.more = ("libfast.so.1",)
        make_library(self.root / "usr/lib/x86_64-linux-gnu/libfast.so.1", "libfast.so.1")
        make_library(self.root / "usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v2/libfast.so.1", "libfast.so.1")
        update_cache(self.root)
        loaded = self.check(box)
        self.assertTrue(any("glibc-hwcaps" in path for path in loaded), loaded)

    def test_an_older_libcuda_of_the_image(self):
        box = self.box()
        make_library(self.root / "usr/local/lib/libcuda.so.450.1", "libcuda.so.1")
        (self.root / "usr/local/lib/libcuda.so.1").symlink_to("libcuda.so.450.1")
        make_library(self.root / "usr/lib/x86_64-linux-gnu/libcuda.so.450.1", "libcuda.so.1")
        (self.root / "usr/lib/x86_64-linux-gnu/libcuda.so.1").symlink_to("libcuda.so.450.1")
        update_cache(self.root)
        self.assertIn(f"{LIBRARIES}/libcuda.so.1", self.check(box))

    def test_a_libcuda_that_is_only_in_the_cache(self):
        box = self.box()
        make_library(self.root / "usr/local/lib/libcuda.so.450.1", "libcuda.so.1")
        (self.root / "usr/local/lib/libcuda.so.1").symlink_to("libcuda.so.450.1")
        update_cache(self.root)
        shutil.rmtree(self.root / "usr/local/lib")
        self.assertIn(f"{LIBRARIES}/libcuda.so.1", self.check(box))

    def test_newer_cuda_libraries_of_the_image(self):
        box = self.box()
        self.more = ("libcuda.so",)
        make_library(self.root / COMPAT / "libcuda.so.560.10", "libcuda.so.1")
        (self.root / COMPAT / "libcuda.so.1").symlink_to("libcuda.so.560.10")
        (self.root / COMPAT / "libcuda.so").symlink_to("libcuda.so.1")
        update_cache(self.root)
        loaded = self.check(box, (f"/{COMPAT}", LIBRARIES))
        self.assertIn(f"/{COMPAT}/libcuda.so.1", loaded)
        self.assertIn(f"/{COMPAT}/libcuda.so", loaded)

    def test_cuda_libraries_that_are_not_newer_after_a_second_start(self):
        box = self.box()
        update_cache(self.root)
        make_library(self.root / COMPAT / "libcuda.so.560.10", "libcuda.so.1")
        (self.root / COMPAT / "libcuda.so.1").symlink_to("libcuda.so.560.10")
        self.start(box)
        self.assertIn(f"/{COMPAT}/libcuda.so.1", self.loaded(box))
        box.delete()
        (self.root / COMPAT / "libcuda.so.560.10").rename(self.root / COMPAT / "libcuda.so.450.10")
        (self.root / COMPAT / "libcuda.so.1").unlink()
        (self.root / COMPAT / "libcuda.so.1").symlink_to("libcuda.so.450.10")
        box.spec["process"]["env"] = box.spec["process"]["env"][:1]
        self.start(box)
        self.assertIn("--directory", hook_of(box)[0]["args"])
        self.assertEqual(self.listed(self.root / "etc/ld.so.cache")["libcuda.so.1 (libc6,x86-64)"], [f"{LIBRARIES}/libcuda.so.1"])

    def test_newer_cuda_libraries_without_a_cache(self):
        box = self.box()
        (self.root / "etc/ld.so.conf").unlink()
        make_library(self.root / COMPAT / "libcuda.so.560.10", "libcuda.so.1")
        (self.root / COMPAT / "libcuda.so.1").symlink_to("libcuda.so.560.10")
        self.start(box)
        self.assertEqual(hook_of(box), [])
        self.assertIn(f"/{COMPAT}/libcuda.so.1", self.loaded(box))

    def test_newer_cuda_libraries_in_a_volume(self):
        box = self.box()
        update_cache(self.root)
        volume = box.directory / "volume"
        make_library(volume / "compat/libcuda.so.560.10", "libcuda.so.1")
        (volume / "compat/libcuda.so.1").symlink_to("libcuda.so.560.10")
        box.spec["mounts"].append({"destination": "/usr/local/cuda/", "type": "bind", "source": str(volume), "options": ["rbind", "ro"]})
        self.start(box)
        self.assertIn("--directory", hook_of(box)[0]["args"])
        self.assertIn(f"/{COMPAT}/libcuda.so.1", self.loaded(box))

    def test_a_library_that_the_user_mounts_under_the_drivers_name(self):
        box = self.box()
        update_cache(self.root)
        mine = box.directory / "mine.so"
        make_library(mine, "libcuda.so.1")
        box.spec["mounts"].append({"destination": f"{LIBRARIES}/libcuda.so.1", "type": "bind", "source": str(mine), "options": ["rbind", "ro"]})
        self.start(box)
        self.assertEqual(hook_of(box), [])
        inside = self.inside / LIBRARIES.lstrip("/")
        self.assertEqual((inside / "libcuda.so.1").read_bytes(), mine.read_bytes())
        driver = self.stage.path(f"{DRIVER}{LIBRARIES}/libcuda.so.{VERSION}")
        self.assertEqual((inside / f"libcuda.so.{VERSION}").read_bytes(), driver.read_bytes(), "the driver's file is its own")

    def test_no_cache_where_the_loader_searches_anyway(self):
        box = self.box()
        self.start(box)
        self.assertEqual(hook_of(box), [])
        self.assertFalse((self.root / "etc/ld.so.cache").exists())
        self.assertIn(f"{LIBRARIES}/libcuda.so.1", self.loaded(box))

    def test_a_new_cache_where_the_loader_would_find_an_older_libcuda_first(self):
        box = self.box()
        (self.root / "etc/ld.so.conf").unlink()
        make_library(self.root / "lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.1")
        self.start(box)
        self.assertEqual(hook_of(box), [])
        self.assertIn(f"{LIBRARIES}/libcuda.so.1", self.loaded(box))

    def test_a_second_start_in_the_same_root(self):
        box = self.box()
        update_cache(self.root)
        self.start(box)
        first = (self.root / "etc/ld.so.cache").read_bytes()
        box.delete()
        box.spec["process"]["env"] = box.spec["process"]["env"][:1]
        self.start(box)
        self.assertEqual((self.root / "etc/ld.so.cache").read_bytes(), first)
        self.assertIn(f"{LIBRARIES}/libcuda.so.1", self.loaded(box))

    def test_a_root_that_is_mounted_read_only(self):
        """Where files to mount over are there: those of the driver, and a cache that does not know them."""
        box = self.box()
        update_cache(self.root)
        before = (self.root / "etc/ld.so.cache").read_bytes()
        box.ask("0").start()
        box.delete()
        (self.root / "etc/ld.so.cache").write_bytes(before)
        for link in (self.root / LIBRARIES.lstrip("/")).glob("libcuda*"):
            if link.is_symlink():
                link.unlink()
        box.write()
        with self.stage.changed(f"mount --bind {self.root} {self.root}", f"mount -o remount,bind,ro {self.root}") as box.place:
            box.start()
            self.assertEqual(hook_of(box), [], "it could not write either")
            self.assertIn(f"{LIBRARIES}/libcuda.so.{VERSION}", self.loaded(box))
            box.delete()
        self.assertEqual((self.root / "etc/ld.so.cache").read_bytes(), before)
        self.assertEqual(sorted(os.listdir(box.directory)), ["config.json", "holdfast-ld.so.cache", "rootfs"])

    def test_the_hook_where_the_loader_would_not_find_them(self):
        box = self.box()
        loader = self.root / LOADER
        loader.write_bytes(loader.read_bytes().replace(b"/usr/lib/x86_64-linux-gnu/", b"/usr/lib/x86_64-elsewhere/"))
        self.start(box)
        self.assertIn("--directory", hook_of(box)[0]["args"])
        self.assertIn("libcuda.so.1 (libc6,x86-64)", self.listed(self.root / "etc/ld.so.cache"))

    def test_a_new_cache_without_a_configuration(self):
        box = self.box()
        (self.root / "etc/ld.so.conf").unlink()
        loader = self.root / LOADER
        loader.write_bytes(loader.read_bytes().replace(b"/usr/lib/x86_64-linux-gnu/", b"/usr/lib/x86_64-elsewhere/"))
        self.start(box)
        self.assertEqual(hook_of(box), [])
        self.assertIn(f"{LIBRARIES}/libcuda.so.1", self.loaded(box))

    def test_the_hook_where_the_cache_is_damaged(self):
        box = self.box()
        update_cache(self.root)
        cache = bytearray((self.root / "etc/ld.so.cache").read_bytes())
        cache[20:24] = b"\xff\xff\xff\x7f"  # the number of entries
        (self.root / "etc/ld.so.cache").write_bytes(cache)
        self.start(box)
        self.assertIn("--directory", hook_of(box)[0]["args"])
        self.assertIn("libcuda.so.1 (libc6,x86-64)", self.listed(self.root / "etc/ld.so.cache"))

    def test_releases(self):
        releases = os.environ.get("HOLDFAST_RELEASES", "").split()
        if not releases:
            self.skipTest("HOLDFAST_RELEASES names none")
        if not which("mmdebstrap"):
            self.skipTest("needs mmdebstrap")
        for release in releases:
            with self.subTest(release):
                kept = ROOTS / f"{release}.tar"
                if not kept.exists():
                    ROOTS.mkdir(exist_ok=True)
                    subprocess.run(["mmdebstrap", "--variant=essential", "--quiet", release, str(kept)], check=True)
                box = self.enterContext(boxes.box(self.stage))
                self.root = box.directory / "rootfs"
                shutil.rmtree(self.root)
                self.root.mkdir()
                subprocess.run(["tar", "-C", str(self.root), "-xf", str(kept), "--exclude=./dev/*"], check=True)
                shutil.copy(which("busybox"), self.root / "bin/busybox")
                self.assertTrue((self.root / "etc/ld.so.cache").exists())
                self.assertIn(f"{LIBRARIES}/libcuda.so.1", self.check(box))


if __name__ == "__main__":
    run_suite(verbosity=2)
