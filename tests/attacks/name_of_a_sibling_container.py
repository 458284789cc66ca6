#!/usr/bin/env python3
"""A pod's annotation gives a container the name of its sibling, which has a GPU.

The attacker may set annotations of a pod, which engines pass on to the specs of its containers. Engines write the
container's name into an annotation (containerd's io.kubernetes.cri.container-name, CRI-O's
io.kubernetes.container.name); the attacker adds the other one with the sibling's name. The container must not get
what kubelet allocated to its sibling, neither at its start nor later by the guard, which gives what "holdfast ps"
says is owed.
"""

import json

from attack_support import Box, RuntimeCase, allocation, which, write_checkpoint
from gpu_stage import BIN, UUID
from support import run_suite

UID = "11111111-aaaa-bbbb-cccc-000000000171"
CONTAINERD, CRIO = "io.kubernetes.cri.container-name", "io.kubernetes.container.name"
# In this order in the spec: the result must be the same for a reader that keeps the first and one that keeps the last.
HOSTILE = {
    "containerd": {CONTAINERD: "main", CRIO: "sibling"},
    "containerd, the other order": {CRIO: "sibling", CONTAINERD: "main"},
    "CRI-O": {CRIO: "main", CONTAINERD: "sibling"},
    "CRI-O, the other order": {CONTAINERD: "sibling", CRIO: "main"},
}


class Sibling(RuntimeCase):
    def container(self, annotations: dict[str, str]) -> Box:
        box = self.pod(UID, "all")
        box.spec["annotations"] = annotations | {"io.kubernetes.cri.container-type": "container"}
        return box.write()

    def allocate(self, *names: str) -> None:
        file = write_checkpoint(self.stage(), *(allocation(UID, name, [UUID]) for name in names))
        self.addCleanup(file.unlink, missing_ok=True)

    def test_the_gpu_of_the_sibling(self):
        self.allocate("sibling")
        for name, annotations in HOSTILE.items():
            with self.subTest(name):
                box = self.container(annotations)
                done = self.attempt(box)
                if done.returncode == 0:
                    self.assertEqual(box.opens("/dev/nvidia0"), "ENOENT")
                self.assertNotIn("devices", box.edited()["linux"], "device nodes were added to the spec")
                self.assertFalse(box.entry().exists(), "an entry in the ledger: the guard would give it the GPU")
                box.delete()

    def test_what_the_guard_would_give(self):
        self.allocate("sibling")
        for name, annotations in HOSTILE.items():
            with self.subTest(name):
                box = self.container(annotations)
                box.runtime = which("runc")
                self.assertEqual(self.owed(box.start()), [])
                box.delete()

    def owed(self, box: Box) -> list[str]:
        report = json.loads(box.stage.run(f"{BIN}/holdfast", "ps", "--all", "-o", "json").stdout)
        return [node["path"] for found in report["containers"] if found["id"] == box.name for node in found["owed"]]

    def test_a_container_without_a_name(self):
        self.allocate("sibling", "")
        box = self.container({})
        self.attempt(box)
        self.assertNotIn("devices", box.edited()["linux"])

    def test_the_gpu_of_its_own(self):
        self.allocate("main")
        for key in (CONTAINERD, CRIO):
            with self.subTest(key):
                box = self.container({key: "main"}).start()
                self.assertEqual(box.opens("/dev/nvidia0"), "ENXIO")
                box.delete()

    def test_the_same_name_in_both(self):
        self.allocate("main")
        box = self.container({CONTAINERD: "main", CRIO: "main"}).start()
        self.assertEqual(box.opens("/dev/nvidia0"), "ENXIO")
        self.assertIn("/dev/nvidia0", self.owed(box))


if __name__ == "__main__":
    run_suite()
