#!/usr/bin/env python3
"""The manifest and the chart by a real kubectl (HOLDFAST_KUBECTL or PATH): kustomize, and a dry run of the client and of the server.

A dry run asks a server for its kinds and their fields, also with --dry-run=client: it needs kube-apiserver and etcd (HOLDFAST_KUBE_APISERVER, HOLDFAST_ETCD, or PATH).
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import yaml

TESTS = pathlib.Path(__file__).parents[1]
sys.path += [str(TESTS / "support"), str(TESTS / "e2e")]

import chart  # noqa: E402
from api_server import make_certificates  # noqa: E402
from real_api_server import RealApiServer  # noqa: E402
from support import which  # noqa: E402

KUBECTL = os.environ.get("HOLDFAST_KUBECTL") or which("kubectl")


class Kubectl(unittest.TestCase):
    def setUp(self) -> None:
        if not KUBECTL:
            self.skipTest("no kubectl (HOLDFAST_KUBECTL or PATH)")
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="hf-manifest-")))

    def kubectl(self, *arguments: str) -> str:
        environment = os.environ | {"HOME": str(self.directory), "KUBECONFIG": str(self.directory / "kubeconfig")}
        done = subprocess.run([KUBECTL, *arguments], capture_output=True, text=True, timeout=120, check=False, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout


class Kustomize(Kubectl):
    def test_sets_the_image(self) -> None:
        (self.directory / "holdfast.yaml").write_text(chart.MANIFEST.read_text())
        images = [{"name": "localhost/holdfast", "newName": "registry.example.com/holdfast", "newTag": "2"}]
        (self.directory / "kustomization.yaml").write_text(yaml.safe_dump({"resources": ["holdfast.yaml"], "images": images}))
        found = chart.objects_in(self.kubectl("kustomize", str(self.directory)))
        wanted = chart.objects_in(chart.MANIFEST.read_text())
        pod = next(one for one in wanted if one["kind"] == "DaemonSet")["spec"]["template"]["spec"]
        for container in pod["initContainers"] + pod["containers"]:
            container["image"] = "registry.example.com/holdfast:2"
        name = lambda one: (one["kind"], one["metadata"]["name"])  # noqa: E731
        self.assertEqual(sorted(found, key=name), sorted(wanted, key=name))


class DryRun(Kubectl):
    def setUp(self) -> None:
        super().setUp()
        server = RealApiServer(self.directory)
        if server.missing:
            self.skipTest(f"a dry run asks a server: {server.missing}")
        make_certificates(self.directory)
        self.enterContext(contextlib.closing(server))
        server.start()
        (self.directory / "kubeconfig").write_text(server.kubeconfig())
        self.kubectl("create", "namespace", chart.NAMESPACE)

    def check(self, text: str) -> None:
        """Strict: a field that Kubernetes does not know is an error."""
        file = self.directory / "objects.yaml"
        file.write_text(text)
        objects = chart.objects_in(text)
        for where in ("client", "server"):
            said = self.kubectl("apply", f"--dry-run={where}", "--validate=strict", "--namespace", chart.NAMESPACE, "-f", str(file))
            self.assertEqual(len(said.splitlines()), len(objects), said)

    def test_the_manifest_is_valid(self) -> None:
        self.check(chart.MANIFEST.read_text())

    def test_the_chart_is_valid_with_every_switch(self) -> None:
        if reason := chart.why_not():
            self.skipTest(f"the chart is not rendered: {reason}")
        for more in (
            {"kube": {"taint": True, "dra": True, "devicePlugin": True, "features": True}, "runtime": {"install": True, "engine": "crio", "default": True}},
            {"kube": {"enabled": False}, "runtime": {"undo": True, "config": "/etc/k0s/containerd.toml"}, "config": {"web": {"listen": "none"}}},
        ):
            self.check(chart.render(more))


if __name__ == "__main__":
    unittest.main(verbosity=2)
