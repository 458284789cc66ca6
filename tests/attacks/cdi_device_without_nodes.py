#!/usr/bin/env python3
"""A pod names a CDI device of the host that has no device nodes, only mounts and hooks.

The attacker may start pods, or wrote an image that one runs: an environment variable, an annotation or a mount names
the CDI device. kubelet allocated nothing, or something else, or allocated it to another container. Neither the mount
nor the hook, which is a program that runs as root of the host, may be applied. If kubelet's checkpoint names
exactly that device for the container, it is delivered.
"""

import json

from attack_support import SITE_DEVICE, Box, RuntimeCase, allocation, make_site_device, write_checkpoint
from gpu_stage import UUID
from support import run_suite

UID = "11111111-aaaa-bbbb-cccc-000000000031"
OTHER_UID = "11111111-aaaa-bbbb-cccc-000000000032"
ANOTHER_DEVICE = SITE_DEVICE.replace("secrets", "others")


def ask_by_environment(box: Box) -> None:
    box.spec["process"]["env"].append(f"NVIDIA_VISIBLE_DEVICES={SITE_DEVICE}")


def ask_by_annotation(box: Box) -> None:
    box.spec["annotations"]["cdi.k8s.io/attack"] = SITE_DEVICE


def ask_by_mount(box: Box) -> None:
    path = f"/var/run/nvidia-container-devices/cdi/{SITE_DEVICE.replace('=', '/')}"
    box.spec["mounts"].append({"destination": path, "type": "bind", "source": "/dev/null", "options": ["bind"]})


WAYS = {"environment": ask_by_environment, "annotation": ask_by_annotation, "mount": ask_by_mount}


def claim(uid: str, device: str) -> dict:
    """A prepared resource claim in the format of kubelet."""
    prepared = {"PoolName": "pool", "DeviceName": "device", "CDIDeviceIDs": [device]}
    drivers = {"driver.site.test": {"Devices": [prepared]}}
    return {"Namespace": "default", "ClaimName": f"claim-{uid[-2:]}", "PodUIDs": {uid: {}}, "DriverState": drivers}


class WithoutNodes(RuntimeCase):
    def arrange(self, way: str, *nodes: str) -> Box:
        box = self.pod(UID)
        self.mark = make_site_device(box.stage, box.directory, *nodes)
        WAYS[way](box)
        return box.write()

    def checkpoint(self, *entries: dict) -> None:
        self.addCleanup(write_checkpoint(self.stage(), *entries).unlink, missing_ok=True)

    def check_nothing(self, way: str, *nodes: str) -> None:
        with self.subTest(way):
            box = self.arrange(way, *nodes)
            done = self.attempt(box)
            self.assertFalse(self.mark.exists(), f"the hook ran as root of the host: {done.stderr}")
            if done.returncode == 0:
                self.assertFalse(box.inside("/secret").exists(), "a file of the host is in the container")
            self.assertNotIn("secret", json.dumps(box.edited()["mounts"]).replace("/cdi/site.test/data/secrets", ""))
            box.delete()

    def check_delivered(self, way: str) -> None:
        with self.subTest(way):
            box = self.arrange(way).start()
            self.assertEqual(box.inside("/secret").read_text(), "of the host")
            self.assertTrue(self.mark.exists())
            box.delete()

    def test_nothing_is_allocated(self):
        for way in WAYS:
            self.check_nothing(way)

    def test_kubelets_record_is_empty(self):
        self.checkpoint()
        self.check_nothing("annotation")

    def test_another_device_is_allocated(self):
        self.checkpoint(allocation(UID, "main", ["one"], (ANOTHER_DEVICE,)))
        for way in ("environment", "annotation"):
            self.check_nothing(way)

    def test_a_gpu_is_allocated(self):
        self.checkpoint(allocation(UID, "main", [UUID]))
        self.check_nothing("annotation")

    def test_its_node_is_allocated_and_the_device_is_not(self):
        """A device plugin gave the GPU; the CDI device has that node, and more."""
        self.checkpoint(allocation(UID, "main", [UUID]))
        self.check_nothing("annotation", "/dev/nvidia0")

    def test_it_is_allocated_to_other_containers(self):
        name = (SITE_DEVICE,)
        self.checkpoint(allocation(UID, "sibling", ["one"], name), allocation(OTHER_UID, "main", ["one"], name))
        self.check_nothing("annotation")

    def test_resource_claims_of_others(self):
        """DRA: this pod has a claim for another device, and another pod has one for this device."""
        file = self.stage().path("/var/lib/kubelet/dra_manager_state")
        file.parent.mkdir(parents=True, exist_ok=True)
        claims = [claim(UID, ANOTHER_DEVICE), claim(OTHER_UID, SITE_DEVICE)]
        file.write_text(json.dumps({"Data": json.dumps({"ClaimInfoStateList": claims}), "Checksum": 1}))
        file.chmod(0o600)
        self.addCleanup(file.unlink, missing_ok=True)
        self.check_nothing("annotation")

    def test_what_is_allocated_is_delivered(self):
        self.checkpoint(allocation(UID, "main", ["one"], (ANOTHER_DEVICE, SITE_DEVICE)))
        for way in ("environment", "annotation"):
            self.check_delivered(way)


if __name__ == "__main__":
    run_suite()
