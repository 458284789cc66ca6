#!/usr/bin/env python3
"""A real Prometheus with our alerts reads a real guard: a container that stays without its device raises the alert, healing ends it."""

import contextlib
import json
import pathlib
import re
import subprocess
import tempfile
import unittest
import urllib.parse
import urllib.request

import engines
from engines import FUSE, GPU_NODES
from guarded import HOLDFASTD, eventually, guarding, other_guards, policy, remove_shields, wait_for_our_turn
from support import HOLDFAST, Case, free_port, run_suite

ALERTS = pathlib.Path(__file__).resolve().parents[2] / "packaging/monitoring/alerts.yaml"
CACHE = HOLDFAST.parent / "packages"
SHORT = "2s"  # instead of the minutes that the alerts wait


def setUpModule() -> None:
    wait_for_our_turn()


class Server:
    """Prometheus with one target, for as long as the test takes."""

    def __init__(self, directory: pathlib.Path, target: int):
        self.address, self.log = f"127.0.0.1:{free_port()}", directory / "prometheus.log"
        (directory / "alerts.yaml").write_text(re.sub(r"for: \d+m", f"for: {SHORT}", ALERTS.read_text()))
        (directory / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
            f"rule_files: [{directory}/alerts.yaml]\n"
            f"scrape_configs: [{{job_name: holdfast, static_configs: [{{targets: ['127.0.0.1:{target}']}}]}}]\n"
        )
        command = [engines.program_of_prometheus("prometheus", CACHE), f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data", f"--web.listen-address={self.address}"]
        with self.log.open("w") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def ask(self, path: str, **query: str) -> dict:
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]
        return {}

    def value(self, expression: str) -> float | None:
        found = self.ask("query", query=expression).get("result")
        return float(found[0]["value"][1]) if found else None

    def alerts(self, name: str) -> dict[str, dict]:
        """The labels of those that fire, by container; of a device that has its driver on every machine."""
        every = [alert["labels"] for alert in self.ask("alerts").get("alerts", []) if alert["state"] == "firing"]
        return {labels.get("container", ""): labels for labels in every if labels["alertname"] == name and labels.get("class", "fuse") == "fuse"}

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)


class Alerts(Case):
    def setUp(self) -> None:
        super().setUp()
        try:
            engines.program_of_prometheus("prometheus", CACHE)
        except engines.Unavailable as error:
            self.skipTest(f"needs prometheus: {error}")
        if not eventually(lambda: not other_guards(), 60, 0.5):
            self.skipTest(f"another guard is at work on this machine: process {other_guards()[0]}")
        self.addCleanup(remove_shields)

    def test_a_container_without_its_device_raises_an_alert_that_healing_ends(self) -> None:
        try:
            container = self.enterContext(engines.oci("v1", "runc"))
        except engines.Unavailable as error:
            self.skipTest(str(error))
        port = free_port()
        daemon = self.enterContext(guarding(HOLDFASTD, "--listen", f"127.0.0.1:{port}", config=policy("observe"), containers=1))
        server = Server(pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="hf-prometheus-"))), port)
        self.addCleanup(server.close)
        accessible = f'holdfast_container_device_accessible{{container="{container.name}",class="fuse"}}'
        self.assertEqual(eventually(lambda: server.value(accessible), 60, 0.5), 1, server.log.read_text() + daemon.said())
        self.assertTrue(eventually(lambda: server.value('up{job="holdfast"}') == 1, 30, 0.5), server.log.read_text())
        self.assertNotIn(container.name, server.alerts("HoldfastContainerLostDevice"))
        self.attack(container)
        fired = eventually(lambda: server.alerts("HoldfastContainerLostDevice").get(container.name), 90, 0.5)
        self.assertTrue(fired, server.log.read_text() + daemon.said())
        self.assertEqual((fired["class"], fired["severity"]), ("fuse", "critical"))
        daemon.config.write_text(policy("heal"))
        daemon.tell(1)  # SIGHUP
        self.assertTrue(eventually(lambda: container.opens(FUSE) == "ok", 60, 0.2), daemon.said())
        self.assertTrue(eventually(lambda: container.name not in server.alerts("HoldfastContainerLostDevice"), 90, 0.5), daemon.said())
        self.assertTrue(eventually(lambda: server.value(accessible) == 1, 30, 0.5), daemon.said())
        daemon.stop()
        self.assertTrue(eventually(lambda: server.alerts("HoldfastDown"), 60, 0.5), server.log.read_text())

    def attack(self, container: engines.Container) -> None:
        for cgroup in container.cgroups():
            if (cgroup / "devices.deny").exists():
                major, minor = GPU_NODES[FUSE]
                (cgroup / "devices.deny").write_text(f"c {major}:{minor} rw")
        self.assertEqual(container.opens(FUSE), "EPERM")


if __name__ == "__main__":
    run_suite(verbosity=2)
