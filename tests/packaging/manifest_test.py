#!/usr/bin/env python3
"""The manifest and the chart by a real kubectl (HOLDFAST_KUBECTL or PATH): kustomize, a dry run of the client and of the server, and what the account of a pod may write.

A dry run asks a server for its kinds and their fields, also with --dry-run=client: it needs kube-apiserver and etcd (HOLDFAST_KUBE_APISERVER, HOLDFAST_ETCD, or PATH).
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error

import yaml

TESTS = pathlib.Path(__file__).parents[1]
sys.path += [str(TESTS / "support"), str(TESTS / "e2e")]

import chart  # noqa: E402
from api_server import make_certificates  # noqa: E402
from real_api_server import RealApiServer  # noqa: E402
from suite import run_suite  # noqa: E402
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


class WithServer(Kubectl):
    def setUp(self) -> None:
        super().setUp()
        server = RealApiServer(self.directory)
        if server.missing:
            self.skipTest(f"a dry run asks a server: {server.missing}")
        make_certificates(self.directory)
        self.enterContext(contextlib.closing(server))
        server.start()
        (self.directory / "kubeconfig").write_text(server.kubeconfig())
        self.server = server
        self.kubectl("create", "namespace", chart.NAMESPACE)


class Rights(WithServer):
    """What the token of a pod of the DaemonSet may write: role and admission policy by a real server."""

    def setUp(self) -> None:
        super().setUp()
        if reason := chart.why_not():
            self.skipTest(f"the chart is not rendered: {reason}")
        wanted = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
        objects = [value for value in chart.render_objects({"kube": {"taint": True, "dra": True}}) if value["kind"] in wanted]
        (self.directory / "rights.yaml").write_text(yaml.safe_dump_all(objects))
        self.kubectl("apply", "-f", str(self.directory / "rights.yaml"))
        self.tokens = {node: self.token_on(node) for node in ("gpu-1", "gpu-2")}

    def token_on(self, node: str) -> str:
        """As kubelet asks for it, for a pod on that node."""
        self.server.create("/api/v1/nodes", {"kind": "Node", "metadata": {"name": node}})
        pods = f"/api/v1/namespaces/{chart.NAMESPACE}/pods"
        spec = {"serviceAccountName": "holdfast", "nodeName": node, "containers": [{"name": "kube", "image": "localhost/holdfast"}]}
        pod = self.server.create(pods, {"kind": "Pod", "metadata": {"name": f"on-{node}"}, "spec": spec})
        bound = {"kind": "Pod", "apiVersion": "v1", "name": f"on-{node}", "uid": pod["metadata"]["uid"]}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": bound, "expirationSeconds": 3600}}
        return self.server.create(f"/api/v1/namespaces/{chart.NAMESPACE}/serviceaccounts/holdfast/token", request)["status"]["token"]

    def write(self, node: str, path: str, body: dict | None, method: str) -> int:
        """The status of the answer to a pod on `node`."""
        try:
            self.server.ask(path, body, method, token=self.tokens[node], content="application/merge-patch+json" if method == "PATCH" else "application/json")
        except urllib.error.HTTPError as error:
            self.assertNotIn(error.code, (404, 409, 415), (path, error.read()))
            return error.code
        return 200

    def test_a_pod_writes_its_own_node_and_no_other(self) -> None:
        condition = {"status": {"conditions": [{"type": "DeviceAccess", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": None, "lastHeartbeatTime": None}]}}
        taint = {"spec": {"taints": [{"key": "holdfast.dev/device-access", "effect": "NoSchedule"}]}}
        end = time.monotonic() + 60  # role and policy are in force a moment later
        writes = lambda node: self.write("gpu-1", f"/api/v1/nodes/{node}", taint, "PATCH") == 200  # noqa: E731
        while not (writes("gpu-1") and not writes("gpu-2")) and time.monotonic() < end:
            time.sleep(0.5)
        for path, body in (("", taint), ("/status", condition)):
            self.assertEqual(self.write("gpu-1", f"/api/v1/nodes/gpu-1{path}", body, "PATCH"), 200, path)
            self.assertIn(self.write("gpu-1", f"/api/v1/nodes/gpu-2{path}", body, "PATCH"), (403,), path)
        for body in (
            {"metadata": {"labels": {"tier": "secret"}}},
            {"metadata": {"annotations": {"a": "b"}}},
            {"spec": {"taints": [{"key": "holdfast.dev/device-access", "effect": "NoSchedule"}, {"key": "other", "effect": "NoSchedule"}]}},
            {"spec": {"unschedulable": True}},
        ):
            self.assertEqual(self.write("gpu-1", "/api/v1/nodes/gpu-1", body, "PATCH"), 403, body)
        self.assertEqual(self.write("gpu-1", "/api/v1/nodes/gpu-1/status", {"metadata": {"labels": {"tier": "secret"}}}, "PATCH"), 403)
        self.server.ask("/api/v1/nodes/gpu-1", {"metadata": {"labels": {"a": "b"}}, "spec": {"taints": [{"key": "other", "effect": "NoSchedule"}]}}, "PATCH", content="application/merge-patch+json")
        both = {"spec": {"taints": [{"key": "other", "effect": "NoSchedule"}, {"key": "holdfast.dev/device-access", "value": "lost", "effect": "NoSchedule"}]}}
        self.assertEqual(self.write("gpu-1", "/api/v1/nodes/gpu-1", both, "PATCH"), 200, "beside the taint of another")
        self.assertEqual(self.write("gpu-1", "/api/v1/nodes/gpu-1", {"spec": {"taints": []}}, "PATCH"), 403)
        self.assertEqual(self.write("gpu-1", "/api/v1/nodes/gpu-1/status", condition, "PATCH"), 200)
        self.assertEqual(self.write("gpu-1", "/api/v1/nodes/gpu-1", {}, "DELETE"), 403)
        self.assertEqual(self.write("gpu-1", f"/api/v1/namespaces/{chart.NAMESPACE}/pods", None, "GET"), 403)

    def test_a_pod_writes_slices_of_its_node_and_driver_and_no_others(self) -> None:
        def slice_of(node: str, driver: str) -> dict:
            pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
            return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{node}-{driver}"}, "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": []}}

        slices, own, foreign = "/apis/resource.k8s.io/v1/resourceslices", "gpu.holdfast.dev", "gpu.example.com"
        self.server.ask(slices, slice_of("gpu-2", foreign), "POST")
        end = time.monotonic() + 60
        while self.write("gpu-1", f"{slices}/gpu-2-{foreign}", None, "DELETE") == 200 and time.monotonic() < end:
            time.sleep(0.5)
            self.server.ask(slices, slice_of("gpu-2", foreign), "POST")
        self.assertEqual(self.write("gpu-1", slices, slice_of("gpu-1", own), "POST"), 200)
        for node, driver in (("gpu-2", own), ("gpu-1", foreign)):
            self.assertIn(self.write("gpu-1", slices, slice_of(node, driver), "POST"), (403, 422), (node, driver))
        self.assertIn(self.write("gpu-2", f"{slices}/gpu-1-{own}", None, "DELETE"), (403, 422))
        self.assertEqual(self.write("gpu-1", f"{slices}/gpu-1-{own}", None, "DELETE"), 200)


class DryRun(WithServer):
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
    run_suite(verbosity=2)
