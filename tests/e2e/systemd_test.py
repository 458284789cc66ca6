#!/usr/bin/env python3
"""A real systemd and containers of runc's systemd driver: the loss at a daemon-reload, seen before it comes and cured after."""

import json
import unittest

from support import HOLDFAST, Case, run_suite
from systemd_host import FUSE, GPU, NODES, Container, Systemd, systemd_host, why_no_systemd


class Reload(Case):
    def setUp(self):
        super().setUp()
        if reason := why_no_systemd():
            self.skipTest(reason)

    def ask(self, host: Systemd, *arguments: str) -> dict:
        return json.loads(host.run(HOLDFAST, *arguments, "-o", "json", check=False).stdout)

    def findings(self, host: Systemd, container: Container, device: tuple[int, int]) -> list[dict]:
        """Findings about a device; that the stand-in GPU has no driver is left out."""
        report = self.ask(host, "doctor", container.name)
        return [f for f in report["findings"] if NODES[device] in f["verdict"] and f["code"] not in ("HF-104", "HF-107")]

    def codes(self, host: Systemd, container: Container, device: tuple[int, int]) -> list[str]:
        return [finding["code"] for finding in self.findings(host, container, device)]

    def cure(self, host: Systemd, finding: dict) -> None:
        self.assertTrue(finding["cure"][0].startswith("systemctl set-property --runtime "), finding)
        host.run("sh", "-c", finding["cure"][0])

    def write_ledger(self, host: Systemd, container: Container) -> None:
        """The device was given behind systemd's back, and holdfast remembers."""
        node = {"path": NODES[FUSE], "type": "c", "major": FUSE[0], "minor": FUSE[1], "access": "rw"}
        entry = json.dumps({"version": 1, "container": container.name, "cgroup": f"/system.slice/{container.unit}", "nodes": [node]})
        file = f"/run/holdfast/ledger/{container.name}.json"
        host.run("sh", "-c", f"umask 077; mkdir -p /run/holdfast/ledger && cat >{file} <<'E'\n{entry}\nE")

    def check_injected(self, version: str):
        with systemd_host(version) as host, host.container() as container:
            self.write_ledger(host, container)
            self.assertEqual(self.codes(host, container, FUSE), ["HF-102"] if version == "v2" else ["HF-101"])
            host.run(HOLDFAST, "grant", container.name, "c 10:229 rw")
            self.assertEqual(container.opens(FUSE), "ok")

            self.assertEqual(self.codes(host, container, FUSE), ["HF-201"])
            self.assertEqual(self.ask(host, "explain", container.name)["container"]["state"], "at risk")
            host.daemon_reload()
            self.assertEqual(container.opens(FUSE), "EPERM", "as it was predicted")
            lost = self.findings(host, container, FUSE)
            self.assertEqual([finding["code"] for finding in lost], ["HF-101"])
            self.assertIn("systemd", lost[0]["verdict"])

            self.cure(host, lost[0])
            self.assertEqual(container.opens(FUSE), "ok")
            self.assertEqual(self.codes(host, container, FUSE), [])
            host.daemon_reload()
            self.assertEqual(container.opens(FUSE), "ok", "the unit has it now")
            self.assertEqual(self.codes(host, container, FUSE), [])

    def test_an_injected_device_on_v2(self):
        self.check_injected("v2")

    def test_an_injected_device_on_v1(self):
        self.check_injected("v1")

    def test_a_risk_that_is_cured_before_the_reload_does_not_come_true(self):
        with systemd_host("v2") as host, host.container() as container:
            self.write_ledger(host, container)
            host.run(HOLDFAST, "grant", container.name, "c 10:229 rw")
            risk = next(f for f in self.findings(host, container, FUSE) if f["code"] == "HF-201")
            self.cure(host, risk)
            self.assertEqual(self.codes(host, container, FUSE), [])
            host.daemon_reload()
            self.assertEqual(container.opens(FUSE), "ok")

    def check_left_out(self, version: str):
        """runc 1.1.3 to 1.1.6 do not pass a device without a link to systemd, though the bundle lists it."""
        with systemd_host(version) as host, host.container(devices=[GPU, FUSE]) as container:
            runtime = self.ask(host, "explain", container.name)["container"]["runtime_version"]
            if not "1.1.3" <= runtime[:5] <= "1.1.6":
                self.skipTest(f"runc {runtime} has not this fault")
            self.assertEqual(self.codes(host, container, FUSE), [], "sysfs knows it, so runc passed it to systemd")
            self.assertEqual(self.codes(host, container, GPU), ["HF-202"])
            host.daemon_reload()
            self.assertEqual(container.opens(FUSE), "ok")
            self.assertEqual(container.opens(GPU), "EPERM")
            lost = self.findings(host, container, GPU)
            self.assertEqual([finding["code"] for finding in lost], ["HF-101"])
            self.cure(host, lost[0])
            self.assertEqual(container.opens(GPU), "ENXIO")

    def test_a_device_of_the_bundle_that_runc_left_out_v2(self):
        self.check_left_out("v2")

    def test_a_device_of_the_bundle_that_runc_left_out_v1(self):
        self.check_left_out("v1")


if __name__ == "__main__":
    run_suite(verbosity=1)
