#!/usr/bin/env python3
"""An image has annotations that ask for CDI devices of the host.

The attacker is the author of an image for podman, which copies an image's annotations into the container's spec: one
names a CDI device, another (io.container.manager) says that podman had nothing to do with it. Outside pods,
annotations count only below containerd's shim, recognized by the program of the runtime's parent process, never by the
spec. Below podman's conmon and below unknown parents they must add neither mounts nor hooks nor device nodes.
"""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import tarfile
from collections.abc import Iterator
from unittest import mock

from attack_support import SITE_DEVICE, Box, RuntimeCase, compile_c, engines, make_site_device
from gpu_stage import RUNTIME, Stage, stage
from runtime_test import PROGRAMS
from support import run_suite

# Starts the runtime as its child.
PARENT = r"""
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char** arguments) {
  const pid_t child = fork();
  if (child == 0) { execv(arguments[1], arguments + 1); _exit(127); }
  int status = 0;
  waitpid(child, &status, 0);
  return count > 1 && WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
"""
ANNOTATIONS = {"cdi.k8s.io/attack": SITE_DEVICE, "io.container.manager": "cri-o"}


class Annotations(RuntimeCase):
    def arrange(self, parent: str, manager: str | None) -> Box:
        """A container whose spec has the annotations, and whose runtime has a parent process of that name."""
        box = self.box()
        self.mark = make_site_device(box.stage, box.directory, "/dev/nvidia1")
        box.spec["annotations"] = {"cdi.k8s.io/attack": SITE_DEVICE}
        if manager is not None:
            box.spec["annotations"]["io.container.manager"] = manager
        program = box.directory / parent
        compile_c(PARENT, program)
        box.runtime, box.root = str(program), [RUNTIME]
        return box.write()

    def check_nothing(self, root: pathlib.Path | None) -> None:
        self.assertFalse(self.mark.exists(), "the hook ran as root of the host")
        if root:
            self.assertFalse((root / "secret").exists(), "a file of the host is in the container")
            self.assertFalse((root / "dev/nvidia1").exists(), "a device of the host is in the container")

    def check_box(self, parent: str, manager: str | None) -> None:
        with self.subTest(parent, manager=manager):
            box = self.arrange(parent, manager)
            done = self.attempt(box)
            self.check_nothing(box.inside("/") if done.returncode == 0 else None)
            box.delete()

    def test_below_conmon(self):
        for manager in ("libpod", "cri-o", None):
            self.check_box("conmon", manager)

    def test_below_an_unknown_parent(self):
        self.check_box("sh", "cri-o")

    def test_below_containerds_shim_the_device_is_delivered(self):
        box = self.arrange("containerd-shim-runc-v2", None).start()
        self.assertEqual(box.inside("/secret").read_text(), "of the host")
        self.assertTrue(self.mark.exists())
        self.assertEqual(box.opens("/dev/nvidia1"), "ENXIO")

    @contextlib.contextmanager
    def place(self, version: str) -> Iterator[Stage]:
        """The host that the engine runs on."""
        with stage(version, PROGRAMS) as host, engines.scratch_directory() as directory:
            self.mark = make_site_device(host, directory, "/dev/nvidia1")
            yield host

    def test_an_image_for_podman(self):
        """The real podman, with an image whose manifest has the annotations."""
        try:
            self.enterContext(mock.patch.object(engines, "write_image", write_annotated_image))
            container = self.enterContext(engines.podman("v1", runtime=RUNTIME, gpu=False, place=self.place))
        except engines.Unavailable as error:
            self.skipTest(f"cannot start here: {error}")
        annotations = json.loads((container.bundle / "config.json").read_text())["annotations"]
        self.assertEqual(annotations | ANNOTATIONS, annotations, "podman did not copy them")
        self.check_nothing(pathlib.Path(f"/proc/{container.pid}/root"))


def blob_of(files: dict[str, bytes], content: bytes, kind: str) -> dict:
    """Adds a blob to an image layout, and describes it."""
    digest = hashlib.sha256(content).hexdigest()
    files[f"blobs/sha256/{digest}"] = content
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}


def write_annotated_image(directory: pathlib.Path) -> pathlib.Path:
    """An archive of an OCI image whose manifest has annotations."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(engines.fill_rootfs(directory / "image"), arcname=".")
    files: dict[str, bytes] = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}
    layers = [blob_of(files, layer.getvalue(), "layer.v1.tar")]
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine),
        "os": "linux",
        "config": {"Cmd": engines.SLEEP, "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [layers[0]["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob_of(files, json.dumps(config).encode(), "config.v1+json"),
        "layers": layers,
        "annotations": ANNOTATIONS,
    }
    entry = blob_of(files, json.dumps(manifest).encode(), "manifest.v1+json")
    entry["annotations"] = {"org.opencontainers.image.ref.name": engines.IMAGE}
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()
    with tarfile.open(directory / "image.tar", "w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return directory / "image.tar"


if __name__ == "__main__":
    run_suite()
