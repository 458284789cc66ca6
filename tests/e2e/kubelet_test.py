#!/usr/bin/env python3
"""holdfast-kube with kubelet, on a machine with stand-in GPUs: the same cases with a stand-in for kubelet and with a real one.

A real kubelet is looked for in HOLDFAST_KUBELET and in PATH. It runs without an API server, with containerd and on cgroup v1,
in a mount namespace; its pods are static ones. What it knows is asked of its PodResources, its status page and its checkpoint.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
import uuid

import plugin_test  # takes the arguments
from engines import CGROUPS, IMAGE, TIMEOUT, SLEEP, Container, Server, Unavailable, decode, grpc, need, program, write_image
from gpu_stage import BIN, CONFIG, SECOND_UUID, UUID, UVM
from plugin_test import GPU, PLUGINS, REGISTRY, SET, Process, eventually
from support import free_port, remove_cgroup, run_suite

BOTH = {UUID, SECOND_UUID}
NODE_OF = {UUID: "/dev/nvidia0", SECOND_UUID: "/dev/nvidia1"}
KUBELET_CONFIG = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: {cgroup}
cpuManagerPolicy: {policy}
cpuManagerReconcilePeriod: 1s
{reserved}
containerRuntimeEndpoint: unix://{socket}
staticPodPath: /etc/kubernetes/manifests
authentication: {{anonymous: {{enabled: true}}, webhook: {{enabled: false}}}}
authorization: {{mode: AlwaysAllow}}
address: 127.0.0.1
port: {port}
readOnlyPort: {read_only}
healthzPort: {health}
failSwapOn: false
evictionHard: {{memory.available: 10Mi, nodefs.available: "0%", imagefs.available: "0%"}}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
volumePluginDir: /var/lib/kubelet/volumeplugins
syncFrequency: 2s
fileCheckFrequency: 1s
"""


class Refused(AssertionError):
    """kubelet did not admit the pod."""


class Pod:
    """A pod of one container that was admitted: the ids of its devices, and the nodes that the container got."""

    def __init__(self, name: str, ids: set[str], nodes: list[str], container: Container | None = None):
        self.name, self.ids, self.nodes, self.container = name, ids, nodes, container


class StandIn(plugin_test.Kubelet):
    """The pods of the stand-in have no containers."""

    def __init__(self, stage):
        super().__init__(stage, "--registry", REGISTRY)
        self.stage = stage

    def say(self, *words: str) -> dict:
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        return self.wait(lambda event: event["event"] in ("admitted", "deleted", "healthy", "error"))

    def healthy(self) -> set[str]:
        return set(self.say("healthy", GPU)["ids"])

    def used(self) -> set[str]:
        return set(self.say("healthy", GPU)["used"])

    def run_pod(self, count: int) -> Pod:
        name = str(uuid.uuid4())
        answer = self.say("pod", name, GPU, str(count))
        if answer["event"] == "error":
            raise Refused(answer["message"])
        return Pod(name, set(answer["ids"]), [device[0] for device in answer["containers"][0]["devices"]])

    def delete_pod(self, pod: Pod) -> None:
        self.say("delete", pod.name)

    def restart(self) -> "StandIn":
        self.kill()
        self.__init__(self.stage)
        return self

    def close(self) -> None:
        self.kill()


class RealKubelet:
    """kubelet and containerd on the stage; pods are files in its manifests directory."""

    def __init__(self, stage, path: str, policy: str = "static"):
        self.stage, self.path, self.policy = stage, path, policy
        self.cgroup = f"/hf-kubelet-{os.getpid()}"
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="hf-kubelet-", dir="/tmp"))
        self.ports = {"port": free_port(), "read_only": free_port(), "health": free_port()}
        self.containerd = self.server = None
        try:
            self.prepare()
            self.containerd = self.start_containerd()
            self.server = self.start_kubelet()
        except BaseException:
            self.close()
            raise

    def prepare(self) -> None:
        self.stage.call(
            "sh", "-ec", "mount -t tmpfs tmpfs /var/log && mkdir -p /etc/kubernetes/manifests /run/containerd/s"
            " && rm -f /dev/kmsg && mknod /dev/kmsg c 1 11 && mount -t tmpfs none /run/containerd/s",
        )  # fmt: skip
        for hierarchy in CGROUPS.iterdir():
            if hierarchy.is_dir() and hierarchy.name != "unified" and not hierarchy.is_symlink():
                (hierarchy / self.cgroup[1:]).mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            (CGROUPS / "cpuset" / self.cgroup[1:] / name).write_text((CGROUPS / "cpuset" / name).read_text())

    def start_containerd(self) -> Server:
        self.socket = f"{self.directory}/c.sock"
        plugin = '[plugins."io.containerd.grpc.v1.cri"'
        (self.directory / "containerd.toml").write_text(
            f'version = 2\nroot = "{self.directory}/root"\nstate = "{self.directory}/state"\n[grpc]\naddress = "{self.socket}"\n'
            f'{plugin}]\nsandbox_image = "{IMAGE}"\nrestrict_oom_score_adj = true\n'
            f'{plugin}.containerd]\nsnapshotter = "native"\n'
            f'{plugin}.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
            f'{plugin}.containerd.runtimes.runc.options]\nBinaryName = "{program("runc")}"\n'
        )
        command = (program("containerd"), "--config", f"{self.directory}/containerd.toml")
        server = Server(self.stage, command, lambda: self.ctr("version"), self.directory / "containerd.log")
        self.ctr("image", "import", "--snapshotter", "native", f"{write_image(self.directory)}")
        return server

    def start_kubelet(self) -> Server:
        config = KUBELET_CONFIG.format(cgroup=self.cgroup, socket=self.socket, policy=self.policy, reserved='reservedSystemCPUs: "0"' if self.policy == "static" else "", **self.ports)
        (self.directory / "kubelet.yaml").write_text(config)
        command = (self.path, f"--config={self.directory}/kubelet.yaml", "--root-dir=/var/lib/kubelet", "--hostname-override=node1", "--v=2", *self.options())
        return Server(self.stage, command, self.is_ready, self.directory / "kubelet.log")

    def options(self) -> tuple[str, ...]:
        return ()

    def is_ready(self) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['health']}/healthz", timeout=5) as answer:
                return answer.read().decode()
        except (OSError, urllib.error.URLError) as error:
            raise Unavailable(str(error)) from None

    def ctr(self, *arguments: str) -> str:
        return self.stage.call(program("ctr"), "-a", self.socket, "-n", "k8s.io", *arguments)

    def pod_resources(self, method: str) -> dict[int, list]:
        socket = self.stage.path("/var/lib/kubelet/pod-resources/kubelet.sock")
        return decode(grpc(str(socket), f"v1.PodResourcesLister/{method}", {}))

    def ids_in(self, devices: list[bytes]) -> set[str]:
        found = [decode(one) for one in devices]
        return {id_.decode() for one in found if one[1] == [GPU.encode()] for id_ in one.get(2, [])}

    def healthy(self) -> set[str]:
        """Those that a pod could get: allocatable."""
        return self.ids_in(self.pod_resources("GetAllocatableResources").get(1, []))

    def used(self) -> set[str]:
        ids = set()
        for pod in map(decode, self.pod_resources("List").get(1, [])):
            for container in map(decode, pod.get(3, [])):
                ids |= self.ids_in(container.get(2, []))
        return ids

    def status(self, name: str) -> dict:
        """The pod as kubelet sees it: its name is the file's with that of the host."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['read_only']}/pods", timeout=10) as answer:
            pods = json.load(answer)["items"] or []
        return next((pod["status"] for pod in pods if pod["metadata"]["name"] == f"{name}-node1"), {})

    def decided(self, name: str) -> dict:
        """Its status once it runs or was refused."""
        status = self.status(name)
        return status if status.get("phase") in ("Running", "Failed") else {}

    def manifest(self, name: str) -> pathlib.Path:
        return self.stage.path(f"/etc/kubernetes/manifests/{name}.json")

    def run_pod(self, count: int) -> Pod:
        return self.run_with({"limits": {GPU: str(count), "cpu": "100m", "memory": "32Mi"}})

    def run_with(self, resources: dict) -> Pod:
        name = f"pod-{uuid.uuid4().hex[:8]}"
        container = {"name": "main", "image": IMAGE, "imagePullPolicy": "Never", "command": SLEEP, "resources": resources}
        spec = {"hostNetwork": True, "terminationGracePeriodSeconds": 0, "restartPolicy": "Always", "containers": [container]}
        before = self.used()
        text = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
        (self.directory / "manifest").write_text(text)
        shutil.copy(self.directory / "manifest", self.manifest(name).with_suffix(".new"))
        self.manifest(name).with_suffix(".new").rename(self.manifest(name))
        status = eventually(lambda: self.decided(name), TIMEOUT, 0.1)
        if not status:
            raise AssertionError(f"{self.status(name)}\n{self.log()}")
        if status["phase"] == "Failed":
            self.manifest(name).unlink()
            raise Refused(status.get("message", ""))
        container = self.container(status)
        nodes = sorted(f"/dev/{node.name}" for node in pathlib.Path(f"/proc/{container.pid}/root/dev").glob("nvidia*"))
        return Pod(name, self.used() - before, nodes, container)

    def container(self, status: dict) -> Container:
        id_ = status["containerStatuses"][0]["containerID"].removeprefix("containerd://")
        tasks = [line.split() for line in self.ctr("task", "list").splitlines()]
        return Container("kubelet", "v1", id_, id_, next(int(words[1]) for words in tasks if words[0] == id_))

    def delete_pod(self, pod: Pod) -> None:
        self.manifest(pod.name).unlink()
        assert eventually(lambda: not self.status(pod.name), TIMEOUT, 0.1), self.log()
        assert eventually(lambda: not pathlib.Path(f"/proc/{pod.container.pid}").exists(), TIMEOUT, 0.1)

    def restart(self) -> "RealKubelet":
        self.server.restart()
        return self

    def log(self) -> str:
        return (self.directory / "kubelet.log").read_text()[-3000:]

    def close(self) -> None:
        """kubelet first, which would start its pods again."""
        for server in (self.server, self.containerd):
            if server:
                server.stop()
        for path in CGROUPS.glob(f"*{self.cgroup}"):
            remove_cgroup(path)
        self.stage.run("sh", "-c", f"awk '{{print $2}}' /proc/self/mounts | grep -e '^{self.directory}' -e '^/var/lib/kubelet/' | sort -r | xargs -r umount -l")
        shutil.rmtree(self.directory, ignore_errors=True)


class Cases:
    """What holds with any kubelet."""

    kubelet: StandIn | RealKubelet

    def check_healthy(self, ids: set[str], seconds: float = 30) -> None:
        self.assertTrue(eventually(lambda: self.kubelet.healthy() == ids, seconds, 0.05), (self.kubelet.healthy(), self.said()))

    def check_used(self, ids: set[str]) -> None:
        """A kubelet that has just started reads its pods first."""
        self.assertTrue(eventually(lambda: self.kubelet.used() == ids, 30, 0.05), self.kubelet.used())

    def said(self) -> str:
        return "\n".join(self.plugins[-1].lines[-30:])

    def run_plugin(self) -> Process:
        plugin = self.start(Process, f"{BIN}/holdfast-kube")
        self.plugins.append(plugin)
        return plugin

    def run_pod(self, count: int) -> Pod:
        pod = self.kubelet.run_pod(count)
        self.addCleanup(self.delete_pod, pod)
        self.pods.append(pod)
        return pod

    def delete_pod(self, pod: Pod) -> None:
        if pod in self.pods:
            self.pods.remove(pod)
            self.kubelet.delete_pod(pod)

    def setUp(self):
        super().setUp()
        self.plugins: list[Process] = []
        self.pods: list[Pod] = []
        self.kubelet = self.start_case()

    def check_whole(self, pod: Pod) -> None:
        wanted = sorted([*SET, *(NODE_OF[id_] for id_ in pod.ids)])
        self.assertEqual(sorted(pod.nodes), wanted)
        if pod.container:
            for node in wanted:
                self.assertEqual(pod.container.opens(node), "ENXIO", node)  # allowed; there is no driver

    def check_checkpoint(self) -> None:
        file = self.stage.path(f"{PLUGINS}/kubelet_internal_checkpoint")
        done = subprocess.run([plugin_test.KUBELET, "--check", str(file)], capture_output=True, text=True, check=False, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        entries = json.loads(file.read_text())["Data"]["PodDeviceEntries"] or []
        self.assertEqual({id_ for entry in entries for ids in entry["DeviceIDs"].values() for id_ in ids}, self.kubelet.used())

    def test_pods_get_whole_sets_until_none_is_left(self):
        self.run_plugin()
        self.check_healthy(BOTH)
        first, second = self.run_pod(1), self.run_pod(1)
        self.assertEqual(first.ids | second.ids, BOTH)
        self.check_whole(first), self.check_whole(second)
        self.check_checkpoint()
        with self.assertRaisesRegex(Refused, "(?i)unavailable|insufficient"):
            self.kubelet.run_pod(1)
        self.delete_pod(first)
        again = self.run_pod(1)
        self.assertEqual(again.ids, first.ids)
        self.check_whole(again)
        self.delete_pod(again), self.delete_pod(second)
        both = self.run_pod(2)
        self.assertEqual(both.ids, BOTH)
        self.check_whole(both)

    def test_uvm_appears_late(self):
        """The driver has loaded it, but its node is not there yet."""
        self.stage.path("/etc/holdfast/config.yaml").write_text(CONFIG + "  make_nodes: false\n")
        self.stage.call("rm", "/dev/nvidia-uvm")
        self.run_plugin()
        self.assertTrue(eventually(lambda: "/dev/nvidia-uvm is missing" in self.said()), self.said())
        self.check_healthy(set())
        with self.assertRaises(Refused):
            self.kubelet.run_pod(1)
        self.make_node("/dev/nvidia-uvm", UVM, 0)
        self.check_healthy(BOTH)
        self.check_whole(self.run_pod(1))

    def test_kubelet_restarts(self):
        self.run_plugin()
        self.check_healthy(BOTH)
        pod = self.run_pod(1)
        for _ in range(3):
            self.kubelet.restart()
            self.check_healthy(BOTH)
            self.check_used(pod.ids)
            self.check_whole(pod)
        other = self.run_pod(1)
        self.assertEqual(other.ids, BOTH - pod.ids)
        self.check_checkpoint()

    def test_the_plugin_is_killed(self):
        plugin = self.run_plugin()
        self.check_healthy(BOTH)
        pod = self.run_pod(1)
        plugin.kill()
        self.check_healthy(set())
        self.check_whole(pod)
        self.run_plugin()
        self.check_healthy(BOTH)
        self.check_used(pod.ids)
        self.check_whole(self.run_pod(1))

    def test_a_rolling_update_of_two_instances(self):
        old = self.run_plugin()
        self.check_healthy(BOTH)
        pod = self.run_pod(1)
        self.run_plugin()
        time.sleep(2)
        self.check_healthy(BOTH)
        old.kill(signal.SIGTERM)
        self.check_healthy(BOTH)
        time.sleep(2)
        self.check_healthy(BOTH, 1)
        self.check_whole(self.run_pod(1))
        self.check_whole(pod)

    def test_unhealthy_and_healthy_again(self):
        self.stage.path("/etc/holdfast/config.yaml").write_text(CONFIG + "  make_nodes: false\n")
        self.run_plugin()
        self.check_healthy(BOTH)
        pod = self.run_pod(2)
        self.stage.call("rm", "/dev/nvidia1")
        self.check_healthy({UUID})
        if pod.container:
            self.check_resource_health(pod, {UUID: "Healthy", SECOND_UUID: "Unhealthy"})
        self.make_node("/dev/nvidia1", 195, 1)
        self.check_healthy(BOTH)
        if pod.container:
            self.check_resource_health(pod, {UUID: "Healthy", SECOND_UUID: "Healthy"})
        self.check_whole(pod)

    def check_resource_health(self, pod: Pod, wanted: dict[str, str]) -> None:
        """allocatedResourcesStatus, from kubelet 1.36 on."""

        def seen() -> dict[str, str]:
            reported = self.kubelet.status(pod.name)["containerStatuses"][0].get("allocatedResourcesStatus", [])
            return {one["resourceID"]: one["health"] for status in reported for one in status["resources"]}

        if seen():
            self.assertTrue(eventually(lambda: seen() == wanted, 15, 0.2), seen())

    def test_found_by_the_watcher_of_sockets(self):
        """The other way of registration: the plugin puts its socket into kubelet's registry, and kubelet asks who it is."""
        self.stage.path("/etc/holdfast/config.yaml").write_text(CONFIG + "kube: {registration: watcher}\n")
        self.stage.call("mkdir", "-p", REGISTRY)
        plugin = self.run_plugin()
        self.check_healthy(BOTH)
        pod = self.run_pod(1)
        self.kubelet.restart()
        self.check_healthy(BOTH)
        plugin.kill()
        self.check_healthy(set())
        self.run_plugin()
        self.check_healthy(BOTH)
        self.check_whole(pod), self.check_whole(self.run_pod(1))

    def test_a_node_with_old_numbers_is_never_given(self):
        self.stage.path("/etc/holdfast/config.yaml").write_text(CONFIG + "  make_nodes: false\n")
        self.run_plugin()
        self.check_healthy(BOTH)
        self.make_node("/dev/nvidia-uvm", UVM - 1, 0)
        self.check_healthy(set())
        self.make_node("/dev/nvidia-uvm", UVM, 0)
        self.check_healthy(BOTH)
        self.check_whole(self.run_pod(1))


class WithStandIn(Cases, plugin_test.Stands):
    def start_case(self) -> StandIn:
        kubelet = StandIn(self.stage)
        self.addCleanup(kubelet.close)
        return kubelet


class WithKubelet(Cases, plugin_test.Stands):
    shared: RealKubelet

    @classmethod
    def setUpClass(cls):
        path = os.environ.get("HOLDFAST_KUBELET") or shutil.which("kubelet")
        if not path:
            raise unittest.SkipTest("no kubelet in PATH, and HOLDFAST_KUBELET names none")
        super().setUpClass()
        try:
            need("containerd", "ctr", "runc", "curl", "busybox")
            cls.shared = RealKubelet(cls.stage, str(pathlib.Path(path).resolve()))
        except Unavailable as error:
            raise unittest.SkipTest(str(error)) from None
        cls.addClassCleanup(cls.shared.close)

    def reset_directory(self) -> None:
        """kubelet's own is kept: it has its socket there."""

    def start_case(self) -> RealKubelet:
        self.assertTrue(eventually(lambda: not self.shared.healthy() and not self.shared.used(), 30, 0.1), self.shared.used())
        return self.shared


if __name__ == "__main__":
    run_suite()
