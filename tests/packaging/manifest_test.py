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


MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"


def condition_of(kind: str, status: str = "True") -> dict:
    return {"status": {"conditions": [{"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": None, "lastHeartbeatTime": None}]}}


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

    def write(self, node: str, path: str, body: dict | None, method: str, patch: str = MERGE) -> int:
        """The status of the answer to a pod on `node`."""
        try:
            self.server.ask(path, body, method, token=self.tokens[node], content=patch if method == "PATCH" else "application/json")
        except urllib.error.HTTPError as error:
            self.assertNotIn(error.code, (404, 409, 415), (path, error.read()))
            return error.code
        return 200

    def test_a_pod_writes_its_own_node_and_no_other(self) -> None:
        condition = condition_of("DeviceAccess")
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
            {"metadata": {"finalizers": ["example.com/a"]}},
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "gone", "uid": "1"}]}},
            {"spec": {"providerID": "a://b"}},
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

    def wait_for_policies(self) -> None:
        """Role and policies are in force a moment later. Each write is another one: what changes nothing is allowed."""
        for number in range(120):
            foreign = {"status": {"addresses": [{"type": "InternalIP", "address": f"10.9.0.{number}"}]}}
            writes = [self.write("gpu-1", "/api/v1/nodes/gpu-1/status", body, "PATCH", STRATEGIC) for body in ({"status": {}}, foreign)]
            if writes == [200, 403]:
                return
            time.sleep(0.5)
        self.fail(f"{writes}: the policies are not in force")

    def test_a_pod_writes_its_condition_and_nothing_else_of_the_status(self) -> None:
        self.wait_for_policies()
        path = "/api/v1/nodes/gpu-1/status"
        kubelets = {"capacity": {"cpu": "8"}, "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "images": [{"names": ["a"], "sizeBytes": 1}]}
        self.server.ask(path, {"status": kubelets}, "PATCH", content=STRATEGIC)
        for kind in ("Ready", "DeviceAccess", "PIDPressure"):  # one before ours in the list, one behind it
            self.server.ask(path, condition_of(kind), "PATCH", content=STRATEGIC)
        for status in ("False", "True"):
            self.assertEqual(self.write("gpu-1", path, condition_of("DeviceAccess", status), "PATCH", STRATEGIC), 200)
        for foreign in (
            condition_of("Ready", "False"),
            condition_of("GPUProblem"),
            {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}},
            {"status": {"capacity": {"nvidia.com/gpu": "8"}}},
            {"status": {"allocatable": {"cpu": "1"}}},
            {"status": {"addresses": [{"type": "InternalIP", "address": "10.9.9.9"}]}},
            {"status": {"images": None}},
            {"status": {"nodeInfo": {"kubeletVersion": "v1.0.0"}}},
            {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}},
            {"status": {"volumesInUse": ["a"]}},
        ):
            self.assertEqual(self.write("gpu-1", path, foreign, "PATCH", STRATEGIC), 403, foreign)
        found = self.server.get("/api/v1/nodes/gpu-1")["status"]
        self.assertEqual({one["type"]: one["status"] for one in found["conditions"]}, dict.fromkeys(("Ready", "DeviceAccess", "PIDPressure"), "True"))
        self.assertLessEqual(kubelets.items(), found.items())

    def test_a_pod_writes_events_of_its_own(self) -> None:
        def event_of(name: str, **changed: object) -> dict:
            """As src/adapters/apiserver writes it."""
            return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "default"},
                    "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": "default", "uid": "1"}, "type": "Warning", "reason": "DeviceLost", "message": "m", "count": 1,
                    "source": {"component": "holdfast-kube", "host": "gpu-1"}, "reportingComponent": "holdfast-kube", "reportingInstance": "gpu-1"} | changed  # fmt: skip

        events = "/api/v1/namespaces/default/events"
        foreign = ({"source": {"component": "kubelet", "host": "gpu-1"}}, {"source": {"component": "holdfast-kube", "host": "gpu-2"}}, {"reportingComponent": "kubelet"}, {"reportingInstance": "gpu-2"}, {"source": {}})
        self.wait_for_policies()
        end = time.monotonic() + 60
        while self.write("gpu-1", events, event_of(f"early-{time.monotonic()}", **foreign[0]), "POST") == 200 and time.monotonic() < end:
            time.sleep(0.5)
        self.assertEqual(self.write("gpu-1", events, event_of("lost"), "POST"), 200)
        self.server.ask(events, event_of("kubelets", **foreign[0]), "POST")
        again = {"count": 2, "message": "again"}
        self.assertEqual(self.write("gpu-1", f"{events}/lost", again, "PATCH", STRATEGIC), 200)
        self.assertEqual(self.write("gpu-2", f"{events}/lost", again, "PATCH", STRATEGIC), 403)
        own = {key: event_of("")[key] for key in ("source", "reportingComponent", "reportingInstance")}
        for change in (again, again | own):
            self.assertEqual(self.write("gpu-1", f"{events}/kubelets", change, "PATCH", STRATEGIC), 403, "of another component")
        for number, changed in enumerate(foreign):
            self.assertEqual(self.write("gpu-1", events, event_of(f"new-{number}", **changed), "POST"), 403, changed)
        self.assertEqual(self.write("gpu-1", f"{events}/lost", {"reportingComponent": "kubelet"}, "PATCH"), 403)
        self.assertEqual(self.server.get(f"{events}/lost")["count"], 2)

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
