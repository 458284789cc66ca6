#!/usr/bin/env python3
"""The attacks of hostile images on the hook, carried out with real engines instead of handmade bundles.

The attacker is the author of an image that docker starts with a GPU: its ldconfig cache points to the host through
/proc/1/root, and its environment names a library for the dynamic loader. Nothing may appear on the host and no code
of the image may run there. Beside it, containerd delivers the CDI device that the annotation of a container names.
"""

import contextlib
import os
import pathlib
from collections.abc import Callable, Iterator
from unittest import mock

from attack_support import SITE_DEVICE, RuntimeCase, compile_c, engines, listing, make_library, make_site_device
from gpu_stage import LIBRARIES, NODES, RUNTIME, Stage, stage
from loader_variables import CODE
from runtime_test import PROGRAMS
from support import run_suite

GPU = ("--env", "NVIDIA_VISIBLE_DEVICES=0")


class InEngines(RuntimeCase):
    def setUp(self) -> None:
        super().setUp()
        self.outside = self.enterContext(engines.scratch_directory())  # a directory of the host

    @contextlib.contextmanager
    def place(self, version: str) -> Iterator[Stage]:
        """The host that the engine runs on."""
        with stage(version, PROGRAMS) as host:
            self.mark = make_site_device(host, self.outside)
            yield host

    def start(self, engine, version: str, *options: str) -> engines.Container:
        return self.enterContext(engine(version, runtime=RUNTIME, gpu=False, place=self.place, options=options))

    def image_with(self, fill: Callable[[pathlib.Path], None]):
        """Images that engines load meanwhile have what `fill` puts into their root directory."""
        original = engines.fill_rootfs

        def fill_all(rootfs: pathlib.Path) -> pathlib.Path:
            original(rootfs)
            fill(rootfs)
            return rootfs

        return mock.patch.object(engines, "fill_rootfs", fill_all)

    def check_aux_cache(self, version: str) -> None:
        victim = self.outside / "victim"
        victim.mkdir()
        before = listing(victim)

        def fill(rootfs: pathlib.Path) -> None:
            make_library(rootfs / LIBRARIES.lstrip("/") / "libplanted.so", "\nnobody ALL=(ALL) NOPASSWD: ALL\n")
            (rootfs / "var/cache").mkdir(parents=True)
            (rootfs / "var/cache/ldconfig").symlink_to(f"/proc/1/root{victim}")

        with self.image_with(fill):
            why = self.attempt_engine(version)
        self.check_untouched(victim, before, why)

    def attempt_engine(self, version: str, *options: str) -> str:
        """docker may refuse the container; check_default shows whether docker can run at all."""
        try:
            self.start(engines.docker, version, *GPU, *options)
        except engines.Unavailable as error:
            return str(error)
        return "the container started"

    def check_default(self, version: str) -> None:
        try:
            container = self.start(engines.docker, version, *GPU)
        except engines.Unavailable as error:
            self.skipTest(f"cannot start here: {error}")
        self.assertEqual({path: container.opens(path) for path in NODES}, dict.fromkeys(NODES, "ENXIO"))

    def test_ldconfig_cache_in_docker_v1(self):
        self.check_default("v1")
        self.check_aux_cache("v1")

    def test_ldconfig_cache_in_docker_v2(self):
        self.check_default("v2")
        self.check_aux_cache("v2")

    def test_loader_variables_in_docker(self):
        marks = self.outside / "marks"
        marks.mkdir()

        def fill(rootfs: pathlib.Path) -> None:
            compile_c(CODE.replace("MARKS", str(marks)), rootfs / "evil.so", "-shared", "-fPIC")

        for variable in ("LD_PRELOAD", "LD_AUDIT"):
            with self.subTest(variable), self.image_with(fill):
                why = self.attempt_engine("v1", "--env", f"{variable}=/proc/self/cwd/evil.so")
                self.assertEqual(os.listdir(marks), [], "code of the image ran as root of the host")
                self.assertEqual(why, "the container started")

    def test_annotation_in_containerd(self):
        """With containerd the user sets the annotations of a container, and an image cannot."""
        try:
            container = self.start(engines.containerd, "v1", "--annotation", f"cdi.k8s.io/wish={SITE_DEVICE}")
        except engines.Unavailable as error:
            self.skipTest(f"cannot start here: {error}")
        self.assertTrue(self.mark.exists())
        self.assertEqual(pathlib.Path(f"/proc/{container.pid}/root/secret").read_text(), "of the host")


if __name__ == "__main__":
    run_suite()
