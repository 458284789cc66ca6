#!/usr/bin/env python3
"""holdfast-kube as a DRA driver with a real kubelet, a real API server and a containerd that has CDI. This test plays the scheduler: it writes which device a
claim has. Programs: HOLDFAST_KUBELET, HOLDFAST_KUBE_APISERVER and HOLDFAST_ETCD, or those in PATH; containerd is fetched from Debian unless
HOLDFAST_CONTAINERDS names directories with it (the last counts).
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
import urllib.error

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))

import plugin_test  # noqa: E402  takes the arguments
from api_server import make_certificates  # noqa: E402
from engines import IMAGE, TIMEOUT, SLEEP, Container, Server, Unavailable, fetch_package, need, program, write_image  # noqa: E402
from gpu_stage import BIN, CONFIG, SECOND_UUID, UUID, UVM  # noqa: E402
from kubelet_test import RealKubelet  # noqa: E402
from plugin_test import REGISTRY, SET, Process, eventually  # noqa: E402
from real_api_server import RealApiServer  # noqa: E402
from support import HOLDFAST, run_suite  # noqa: E402

DRIVER = "gpu.holdfast.dev"
FIRST, SECOND = UUID.lower(), SECOND_UUID.lower()
RESOURCES = "/apis/resource.k8s.io/v1"
CLAIMS = f"{RESOURCES}/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": DRIVER},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}
KUBE = "kube: {device_plugin: false, api: {kubeconfig: /run/kubeconfig, node: node1, events: false, condition: false}, dra: {enabled: true}}\n"


class KubeletOfCluster(RealKubelet):
    """Its pods come from the API server."""

    def __init__(self, stage, path: str, programs: pathlib.Path):
        self.programs = programs
        super().__init__(stage, path, policy="none")

    def prepare(self) -> None:
        super().prepare()
        self.stage.call("mkdir", "-p", "/run/cdi", "/etc/cdi", REGISTRY)

    def start_containerd(self) -> Server:
        self.socket = f"{self.directory}/c.sock"
        plugin = '[plugins."io.containerd.grpc.v1.cri"'
        (self.directory / "containerd.toml").write_text(
            f'version = 2\nroot = "{self.directory}/root"\nstate = "{self.directory}/state"\n[grpc]\naddress = "{self.socket}"\n'
            f'{plugin}]\nsandbox_image = "{IMAGE}"\nrestrict_oom_score_adj = true\nenable_cdi = true\n'
            f'{plugin}.containerd]\nsnapshotter = "native"\n'
            f'{plugin}.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
            f'{plugin}.containerd.runtimes.runc.options]\nBinaryName = "{program("runc")}"\n'
        )
        command = ("env", f"PATH={self.programs}:{os.environ['PATH']}", f"{self.programs}/containerd", "--config", f"{self.directory}/containerd.toml")
        server = Server(self.stage, command, lambda: self.ctr("version"), self.directory / "containerd.log")
        local = ["--local"] if "--local" in self.ctr("image", "import", "--help") else []
        self.ctr("image", "import", *local, "--snapshotter", "native", f"{write_image(self.directory)}")
        return server

    def ctr(self, *arguments: str) -> str:
        return self.stage.call(f"{self.programs}/ctr", "-a", self.socket, "-n", "k8s.io", *arguments)

    def options(self) -> tuple[str, ...]:
        return ("--kubeconfig=/run/kubeconfig",)


class Claims(plugin_test.Stands):
    @classmethod
    def setUpClass(cls):
        kubelet = os.environ.get("HOLDFAST_KUBELET") or shutil.which("kubelet")
        if not kubelet:
            raise unittest.SkipTest("no kubelet in PATH, and HOLDFAST_KUBELET names none")
        directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="hf-cluster-", dir="/tmp")))
        cls.api = RealApiServer(directory)
        if cls.api.missing:
            raise unittest.SkipTest(cls.api.missing)
        super().setUpClass()
        try:
            need("runc", "curl", "busybox", "openssl")
            given = [path for path in os.environ.get("HOLDFAST_CONTAINERDS", "").split(":") if path]
            programs = pathlib.Path(given[-1]) if given else fetch_package("containerd", "sid", pathlib.Path(HOLDFAST).parent / "packages") / "usr/bin"
            make_certificates(directory)
            cls.addClassCleanup(cls.api.close)
            cls.api.start()
            cls.stage.path("/run/kubeconfig").write_text(cls.api.kubeconfig())
            cls.kubelet = KubeletOfCluster(cls.stage, str(pathlib.Path(kubelet).resolve()), programs)
        except Unavailable as error:
            raise unittest.SkipTest(str(error)) from None
        cls.addClassCleanup(cls.kubelet.close)
        cls.api.create(f"{RESOURCES}/deviceclasses", CLASS)

    def reset_directory(self) -> None:
        """kubelet's own is kept: it has its socket there."""

    def setUp(self):
        super().setUp()
        self.stage.path("/run/kubeconfig").write_text(self.api.kubeconfig())
        self.stage.path("/etc/holdfast/config.yaml").write_text(CONFIG + KUBE)
        self.driver = self.start_driver()

    def start_driver(self) -> Process:
        driver = Process(self.stage, f"{BIN}/holdfast-kube")
        self.addCleanup(driver.kill)
        self.assertTrue(eventually(lambda: self.devices() == {FIRST, SECOND}, 60, 0.2), (self.devices(), driver.lines[-20:]))
        self.assertTrue(eventually(lambda: any("registered" in line for line in driver.lines), 60, 0.2), driver.lines[-20:])
        return driver

    def devices(self) -> set[str]:
        slices = self.api.get(f"{RESOURCES}/resourceslices")["items"]
        return {device["name"] for one in slices for device in one["spec"].get("devices") or []}

    def claim(self, name: str) -> None:
        request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
        body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        self.api.create(CLAIMS, body)
        self.addCleanup(self.api.delete, f"{CLAIMS}/{name}")

    def schedule(self, claim: str, device: str, pod: dict) -> None:
        """What the scheduler writes: the device, and for which pod it is."""
        body = self.api.get(f"{CLAIMS}/{claim}")
        result = {"request": "gpu", "driver": DRIVER, "pool": "node1", "device": device}
        user = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        body["status"] = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
        self.api.ask(f"{CLAIMS}/{claim}/status", body, "PUT")

    def run_pod(self, name: str, claim: str, device: str) -> dict:
        container = {"name": "main", "image": IMAGE, "imagePullPolicy": "Never", "command": SLEEP, "resources": {"claims": [{"name": "gpu"}]}}
        spec = {"nodeName": "node1", "hostNetwork": True, "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
                "enableServiceLinks": False, "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}], "containers": [container]}  # fmt: skip
        pod = self.api.create(PODS, {"kind": "Pod", "metadata": {"name": name}, "spec": spec})
        self.addCleanup(self.remove_pod, name)
        self.schedule(claim, device, pod)
        return pod

    def remove_pod(self, name: str) -> None:
        self.api.delete(f"{PODS}/{name}")
        self.assertTrue(eventually(lambda: not self.pod(name), TIMEOUT, 0.2), self.pod(name))

    def pod(self, name: str) -> dict:
        try:
            return self.api.get(f"{PODS}/{name}")
        except urllib.error.HTTPError:
            return {}

    def running(self, name: str) -> Container:
        self.assertTrue(eventually(lambda: self.pod(name)["status"]["phase"] == "Running", TIMEOUT, 0.2),
                        (json.dumps(self.pod(name).get("status")), self.driver.lines[-20:], self.kubelet.log()))  # fmt: skip
        return self.kubelet.container(self.pod(name)["status"])

    def remembered(self) -> set[str]:
        file = self.stage.path(f"/var/lib/kubelet/plugins/{DRIVER}/claims.json")
        return {claim["name"] for claim in json.loads(file.read_text())["claims"]} if file.exists() else set()

    def test_a_pod_gets_the_device_of_its_claim_and_nothing_else(self):
        self.claim("one")
        self.run_pod("train", "one", SECOND)
        container = self.running("train")
        self.check_opens_exactly(container, ["/dev/nvidia1", *SET])
        self.assertEqual(self.remembered(), {"one"})
        self.kubelet.restart()
        self.driver.kill()
        self.driver = self.start_driver()
        self.assertEqual(container.opens("/dev/nvidia1"), "ENXIO")  # allowed; there is no driver
        self.assertEqual(self.remembered(), {"one"})
        self.remove_pod("train")
        self.assertTrue(eventually(lambda: self.remembered() == set(), TIMEOUT, 0.2), self.driver.lines[-20:])

    def test_a_device_that_is_not_whole_starts_nothing_until_it_is(self):
        self.stage.path("/etc/holdfast/config.yaml").write_text(CONFIG + "  make_nodes: false\n" + KUBE)
        self.driver.kill()
        self.driver = self.start_driver()
        self.stage.call("rm", "/dev/nvidia-uvm")
        self.assertTrue(eventually(lambda: self.devices() == set(), 60, 0.2), self.driver.lines[-20:])
        self.claim("half")
        self.run_pod("waits", "half", FIRST)
        events = lambda: [event["message"] for event in self.api.get("/api/v1/namespaces/default/events")["items"]]  # noqa: E731
        self.assertTrue(eventually(lambda: any("/dev/nvidia-uvm is missing" in text for text in events()), TIMEOUT, 0.5), events())
        self.assertEqual(self.pod("waits")["status"]["phase"], "Pending")
        self.make_node("/dev/nvidia-uvm", UVM, 0)
        self.check_opens_exactly(self.running("waits"), ["/dev/nvidia0", *SET])


if __name__ == "__main__":
    run_suite(verbosity=2)
