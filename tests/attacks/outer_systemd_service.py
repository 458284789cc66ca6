#!/usr/bin/env python3
"""Suspicion: the guard widens a service in systemd because a container below the service's cgroup is owed a GPU.

dockerd in a service with Delegate=yes and its own DeviceAllow starts its containers below its own cgroup. The container
is owed a device, mode is harden or heal. The outer service's DeviceAllow, its cgroup's programs and what its
processes can open must stay as they are; a container with a scope of its own is hardened as before.
"""

import json
import pathlib
import tempfile

from attack_support import GuardCase, container_id
from guarded import HOLDFASTD, difference, eventually, guarding, wait_for_our_turn
from support import HOLDFAST, errno_of_open, run_suite
from systemd_host import FUSE, NODES, Container, Systemd, make_bundle, systemd_host, why_no_systemd

SERVICE = "outer.service"
UNIT = (
    "[Unit]\nDefaultDependencies=no\n"
    "[Service]\nExecStart=/bin/sleep infinity\nDelegate=yes\nDevicePolicy=closed\nSlice=system.slice\n"
)


def setUpModule():
    wait_for_our_turn()


class OuterSystemdService(GuardCase):
    def setUp(self):
        super().setUp()
        if reason := why_no_systemd():
            self.skipTest(reason)

    def give(self, host: Systemd, name: str, cgroup: str) -> None:
        """The ledger says that the container was given a device."""
        node = {"path": NODES[FUSE], "type": "c", "major": FUSE[0], "minor": FUSE[1], "access": "rw"}
        entry = json.dumps({"version": 1, "container": name, "cgroup": cgroup, "nodes": [node]})
        file = f"/run/holdfast/ledger/{name}.json"
        host.run("sh", "-c", f"umask 077; mkdir -p /run/holdfast/ledger && cat >{file} <<'E'\n{entry}\nE")

    def start_service(self, host: Systemd) -> pathlib.Path:
        host.run("sh", "-c", f"cat >/run/systemd/system/{SERVICE} <<'U'\n{UNIT}\nU")
        host.daemon_reload()
        host.systemctl("start", SERVICE)
        return host.cgroup / "system.slice" / SERVICE

    def inner_container(self, host: Systemd) -> str:
        """As a dockerd within the service starts it, by runc's cgroupfs driver; its id."""
        directory = pathlib.Path(tempfile.mkdtemp(prefix="c-", dir=host.directory))
        name = container_id()
        make_bundle(directory, f"/system.slice/{SERVICE}/docker/{name}", [])
        host.run("runc", "run", "-d", "--bundle", directory, name)
        self.addCleanup(host.run, "runc", "delete", "-f", name, check=False)
        self.give(host, name, f"/system.slice/{SERVICE}/docker/{name}")
        return name

    def scope_container(self, host: Systemd) -> Container:
        container = self.enterContext(host.container())
        self.give(host, container.name, f"/system.slice/{container.unit}")
        return container

    def allowed(self, host: Systemd) -> str:
        return host.systemctl("show", SERVICE, "--property=DeviceAllow", "--property=DevicePolicy")

    def rules(self, host: Systemd) -> list[dict]:
        target = f"cgroup:/sys/fs/cgroup/system.slice/{SERVICE}"
        return json.loads(host.run(HOLDFAST, "rules", target, "-o", "json").stdout)["effective"]["rules"]

    def check(self, host: Systemd, mode: str) -> None:
        cgroup = self.start_service(host)
        inner, scope = self.inner_container(host), self.scope_container(host)
        before, rules = self.allowed(host), self.rules(host)
        node = f"{host.root}{NODES[FUSE]}"
        host.run("sh", "-c", f"[ -e {NODES[FUSE]} ] || mknod -m 666 {NODES[FUSE]} c {FUSE[0]} {FUSE[1]}")
        self.assertEqual(errno_of_open(cgroup / "docker", node), "EPERM")
        config = f"guard: {{mode: {mode}}}\n"
        with guarding(HOLDFASTD, config=config, containers=2, prefix=host.enter, within=host.directory) as daemon:
            hardened = eventually(lambda: f"{FUSE[0]}:{FUSE[1]}" in " ".join(scope.show("DeviceAllow")), 60)
            self.assertTrue(hardened, f"a container with a scope of its own is hardened: {daemon.said()}")
            eventually(lambda: self.allowed(host) != before, 1.5)
            hardenings = [record for record in daemon.records(inner) if record["action"] == "hardened"]
            self.assertEqual(self.allowed(host), before, f"the service was widened: {hardenings}")
            self.assertEqual(difference(self.rules(host), rules), [])
            self.assertEqual(errno_of_open(cgroup / "docker", node), "EPERM")

    def test_harden(self):
        with systemd_host("v2") as host:
            self.check(host, "harden")

    def test_heal(self):
        with systemd_host("v2") as host:
            self.check(host, "heal")


if __name__ == "__main__":
    run_suite(verbosity=1)
