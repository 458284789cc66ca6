#!/usr/bin/env python3
"""holdfast-kube as a DRA driver, with stand-ins for kubelet and the API server, on a machine with stand-in GPUs."""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import sys
import time
import unittest

import plugin_test  # takes the arguments
from dra_api import ApiServer
import engines
from gpu_stage import BIN, CONFIG, NODES, SECOND_UUID, UUID, UVM
from plugin_test import GPU, PLUGINS, REGISTRY, SET, Kubelet, Process, eventually
from support import run_suite

DRIVER = "gpu.holdfast.dev"
FIRST, SECOND = UUID.lower(), SECOND_UUID.lower()
OWN = f"/var/lib/kubelet/plugins/{DRIVER}"
POD, OTHER_POD = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{{name: it, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: it, user: {{}}}}]
contexts: [{{name: it, context: {{cluster: it, user: it}}}}]
current-context: it
"""
KUBE = "kube: {%s api: {kubeconfig: /run/kubeconfig, node: node1, events: false, condition: false}, dra: {enabled: true}}\n"
ALONE = "device_plugin: false,"


class DraKubelet(Kubelet):
    def __init__(self, stage, *options: str):
        super().__init__(stage, "--registry", REGISTRY, *options)

    def say(self, *words: str) -> dict:
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        return self.wait(lambda event: event["event"] in ("prepared", "unprepared", "error"), 60)

    def prepare(self, *claims: tuple[str, str, str]) -> dict:
        return self.say("prepare", DRIVER, POD, *(word for claim in claims for word in claim))

    def unprepare(self, *claims: tuple[str, str, str]) -> dict:
        return self.say("unprepare", DRIVER, *(word for claim in claims for word in claim))

    def run_pod(self, uid: str) -> str:
        """The id of the device that it got by the device plugin."""
        self.process.stdin.write(f"pod {uid} {GPU} 1\n")
        self.process.stdin.flush()
        return self.wait(lambda event: event["event"] == "admitted")["ids"][0]

    def delete_pod(self, uid: str) -> None:
        self.process.stdin.write(f"delete {uid}\n")
        self.process.stdin.flush()
        self.wait(lambda event: event["event"] == "deleted")

    def registered(self) -> dict:
        return self.wait(lambda event: event["event"] == "driver")

    def health(self, **wanted: str) -> dict:
        """A health list in which the devices are as wanted."""
        is_it = lambda event: event["event"] == "health" and all(event["devices"][name.replace("_", "-")]["health"] == health for name, health in wanted.items())  # noqa: E731
        return self.wait(is_it)["devices"]


class Dra(plugin_test.Stands):
    def setUp(self):
        super().setUp()
        self.stage.call("sh", "-ec", f"rm -rf {REGISTRY} /var/lib/kubelet/plugins /var/lib/kubelet/dra_manager_state && mkdir -p {REGISTRY}")
        self.api = ApiServer()
        self.addCleanup(self.api.stop)
        self.stage.path("/run/kubeconfig").write_text(KUBECONFIG.format(port=self.api.port))

    def configure(self, more: str = ALONE, runtime: str = "") -> None:
        self.stage.path("/etc/holdfast/config.yaml").write_text(CONFIG + runtime + KUBE % more)

    def driver(self, stage=None) -> Process:
        driver = Process(stage or self.stage, f"{BIN}/holdfast-kube")
        self.addCleanup(driver.kill)
        return driver

    def both(self, *options: str, **config: str) -> tuple[DraKubelet, Process]:
        self.configure(**config)
        kubelet = self.start(DraKubelet, *options)
        driver = self.driver()
        self.assertTrue(eventually(lambda: any("registered" in line for line in driver.lines)), driver.lines)
        kubelet.registered()
        self.check_published({FIRST, SECOND}, driver)
        return kubelet, driver

    def check_published(self, names: set[str], driver: Process, seconds: float = 30) -> None:
        self.assertTrue(eventually(lambda: set(self.api.devices()) == names, seconds), (self.api.slices, driver.lines))

    def check_healthy(self, kubelet: DraKubelet, ids: set[str], seconds: float = 30) -> None:
        """What kubelet could give by the device plugin."""

        def healthy() -> set[str]:
            kubelet.process.stdin.write(f"healthy {GPU}\n")
            kubelet.process.stdin.flush()
            return set(kubelet.wait(lambda event: event["event"] == "healthy")["ids"])

        self.assertTrue(eventually(lambda: healthy() == ids, seconds, 0.1), kubelet.lines)

    def names_of(self, answer: dict, claim: tuple[str, str, str]) -> list[str]:
        """The CDI names of a claim that was prepared."""
        self.assertEqual(answer["event"], "prepared", answer)
        self.assertEqual(answer["claims"][claim[2]]["error"], "", answer)
        return [name for device in answer["claims"][claim[2]]["devices"] for name in device["cdi"]]

    def error_of(self, answer: dict, claim: tuple[str, str, str]) -> str:
        self.assertEqual(answer["event"], "prepared", answer)
        found = answer["claims"][claim[2]]
        self.assertEqual(found["devices"], [])
        self.assertNotIn("\n", found["error"])
        return found["error"]

    def remembered(self) -> set[str]:
        file = self.stage.path(f"{OWN}/claims.json")
        return {claim["uid"] for claim in json.loads(file.read_text())["claims"]} if file.exists() else set()

    # What it publishes

    def test_publishes_the_devices_of_the_host(self):
        kubelet, driver = self.both()
        pool, = self.api.pool()
        self.assertEqual(pool["pool"], {"name": "node1", "generation": 1, "resourceSliceCount": 1})
        self.assertEqual((pool["driver"], pool["nodeName"]), (DRIVER, "node1"))
        attributes = self.api.devices()[FIRST]["attributes"]
        self.assertEqual(attributes["uuid"], {"string": UUID})
        self.assertEqual(attributes["type"], {"string": "gpu"})
        self.assertEqual(attributes["productName"], {"string": "NVIDIA A100"})
        self.assertEqual(attributes["driverVersion"], {"version": "550.54.15"})
        self.assertEqual(attributes["resource.kubernetes.io/pciBusID"], {"string": "0000:65:00.0"})
        written, = self.api.slices.values()
        self.assertEqual(written["metadata"]["ownerReferences"][0]["uid"], self.api.node_uid)
        listed = kubelet.health(**{FIRST.replace("-", "_"): "Healthy", SECOND.replace("-", "_"): "Healthy"})
        self.assertEqual(listed[FIRST]["pool"], "node1")
        self.assertAlmostEqual(listed[FIRST]["at"], time.time(), delta=60)
        self.assertFalse(any(name.startswith("holdfast") for name in os.listdir(self.stage.path(PLUGINS))), "no device plugin")
        self.assertEqual(driver.kill(signal.SIGTERM), 0, driver.lines)
        self.assertEqual(os.listdir(self.stage.path(REGISTRY)), [])
        self.assertEqual(set(self.api.devices()), {FIRST, SECOND}, "an update of the driver takes nothing from the cluster")

    def test_publishes_again_what_a_kubelet_removed(self):
        """A kubelet that starts deletes all slices of its node."""
        kubelet, driver = self.both()
        kubelet.kill()
        self.api.slices.clear()
        self.start(DraKubelet).registered()
        self.check_published({FIRST, SECOND}, driver)

    def test_a_conflict_is_read_again(self):
        kubelet, driver = self.both(runtime="  make_nodes: false\n")
        self.api.conflicts = 2
        self.stage.call("rm", "/dev/nvidia1")
        self.check_published({FIRST}, driver)
        self.assertGreater(self.api.pool()[0]["pool"]["generation"], 1)
        self.assertTrue(any("not-published" in line for line in driver.lines), driver.lines)

    def test_writes_nothing_while_nothing_changes(self):
        kubelet, driver = self.both()
        lists = lambda: sum(request.startswith("GET") and "resourceslices" in request for request in self.api.requests)  # noqa: E731
        self.assertTrue(eventually(lambda: lists() >= 3, 40), self.api.requests)  # it has looked twice since the first time
        writes = [request for request in self.api.requests if not request.startswith("GET")]
        self.assertEqual(len(writes), 1, self.api.requests)
        driver.kill()
        self.driver()
        kubelet.registered()
        before = lists()
        self.assertTrue(eventually(lambda: lists() > before, 40), self.api.requests)
        self.assertEqual([request for request in self.api.requests if not request.startswith("GET")], writes, "a restart finds its slices")

    def test_an_unhealthy_device_leaves_the_pool_and_comes_back(self):
        kubelet, driver = self.both(runtime="  make_nodes: false\n")
        self.stage.call("rm", "/dev/nvidia1")
        self.check_published({FIRST}, driver)
        listed = kubelet.health(**{FIRST.replace("-", "_"): "Healthy", SECOND.replace("-", "_"): "Unhealthy"})
        self.assertEqual(listed[SECOND]["message"], "/dev/nvidia1 is missing")
        self.assertEqual(self.api.pool()[0]["pool"]["generation"], 2)
        self.make_node("/dev/nvidia1", 195, 1)
        self.check_published({FIRST, SECOND}, driver)
        kubelet.health(**{SECOND.replace("-", "_"): "Healthy"})
        for node in ("/dev/nvidia0", "/dev/nvidia1"):
            self.stage.call("rm", node)
        self.assertTrue(eventually(lambda: not self.api.slices), self.api.slices)

    def test_the_status_shows_devices_registration_and_claims(self):
        """It is what the metrics and alerts of the guard, and `holdfast devices`, are made of."""
        kubelet, driver = self.both(runtime="  make_nodes: false\n")

        def offer() -> dict:
            offers = json.loads(self.stage.run(f"{BIN}/holdfast", "devices", "-o", "json").stdout)["offers"]
            return next((one for one in offers if one["resource"] == DRIVER), {})

        self.assertTrue(eventually(lambda: offer().get("connected"), 30, 0.2), (offer(), driver.lines))
        self.assertEqual({device["id"]: device["unit"] for device in offer()["devices"]}, {FIRST: UUID, SECOND: SECOND_UUID})
        self.assertEqual((offer()["allocated"], offer()["refused"]), (0, 0))
        claim = self.api.allocate("one", FIRST)
        self.names_of(kubelet.prepare(claim), claim)
        self.stage.call("rm", "/dev/nvidia1")
        self.check_published({FIRST}, driver)
        claim = self.api.allocate("two", SECOND)
        self.error_of(kubelet.prepare(claim), claim)
        self.assertTrue(eventually(lambda: offer()["refused"] == 1, 30, 0.2), offer())
        self.assertEqual(offer()["allocated"], 1)
        self.assertEqual({device["id"]: device.get("problem") for device in offer()["devices"]}, {FIRST: None, SECOND: "/dev/nvidia1 is missing"})
        kubelet.kill()
        self.assertTrue(eventually(lambda: not offer()["connected"], 30, 0.2), offer())
        self.start(DraKubelet).registered()
        self.assertTrue(eventually(lambda: offer()["connected"], 30, 0.2), offer())

    def test_a_restart_does_not_empty_the_pool_while_the_specs_are_not_current(self):
        """As on a node with MIG devices: NVIDIA's library, a pipe here, is asked twice, and a spec is written after each answer."""
        _, driver = self.both(runtime="  make_nodes: false\n")
        driver.kill()
        self.stage.call("sh", "-ec", "rm -rf /run/late && mkdir /run/late && mkfifo /run/late/libnvidia-ml.so.1")
        driver = Process(self.stage, "env", "LD_LIBRARY_PATH=/run/late", f"{BIN}/holdfast-kube")
        self.addCleanup(driver.kill)

        def wait_for_question() -> int:
            with contextlib.suppress(OSError):  # no process reads it yet
                return os.open(self.stage.path("/run/late/libnvidia-ml.so.1"), os.O_WRONLY | os.O_NONBLOCK)
            return 0

        library = eventually(wait_for_question)
        self.assertTrue(library, driver.lines)
        parts = self.stage.path("/proc/driver/nvidia/capabilities/gpu0/mig")
        self.addCleanup(shutil.rmtree, parts.parent)
        (parts / "config").mkdir(parents=True)  # it has to be asked again
        self.stage.call("rm", "/dev/nvidia1")
        time.sleep(1)  # it has seen that
        os.close(library)
        self.check_published({FIRST}, driver)
        library = eventually(wait_for_question)
        self.assertTrue(library, driver.lines)
        os.close(library)
        self.assertFalse([request for request in self.api.requests if request.startswith("DELETE")])

    def test_many_devices_are_split(self):
        self.stage.call("sh", "-ec", "rm -rf /run/gpus && mkdir -p /run/gpus")
        for number in range(200):
            directory = self.stage.path(f"/run/gpus/0000:{number:02x}:00.0")
            directory.mkdir()
            (directory / "information").write_text(f"Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-{number:032}\nDevice Minor: \t {number}\nGPU Excluded:\t No\n")
        self.configure()
        with self.stage.changed("mount --bind /run/gpus /proc/driver/nvidia/gpus") as branch:
            driver = self.driver(branch)
            self.assertTrue(eventually(lambda: len(self.api.devices()) == 200), (driver.lines, self.api.requests))
        self.assertEqual(sorted(len(one["devices"]) for one in self.api.pool()), [72, 128])

    def test_beside_the_device_plugin(self):
        kubelet, driver = self.both(more="")
        self.assertTrue(any("counts" in line for line in driver.lines), driver.lines)
        claim = self.api.allocate("one", FIRST)
        self.assertEqual(self.names_of(kubelet.prepare(claim), claim), [f"nvidia.com/gpu={UUID}"])
        self.check_healthy(kubelet, {SECOND_UUID})
        self.assertIn("the claim training/one has it", kubelet.ask("allocate", GPU, UUID)["message"])
        self.assertEqual(kubelet.run_pod(OTHER_POD), SECOND_UUID)
        taken = self.api.allocate("two", SECOND)
        self.assertIn(f"the pod {OTHER_POD} has it", self.error_of(kubelet.prepare(taken), taken))
        self.check_published({FIRST}, driver, 60)
        self.names_of(kubelet.prepare(claim), claim)
        kubelet.unprepare(claim)
        self.check_healthy(kubelet, {UUID, SECOND_UUID})
        kubelet.delete_pod(OTHER_POD)
        self.check_published({FIRST, SECOND}, driver, 60)
        self.assertIn(OTHER_POD, self.stage.path(f"{PLUGINS}/kubelet_internal_checkpoint").read_text(), "kubelet prunes it when it admits another pod")
        self.names_of(kubelet.prepare(taken), taken)

    def test_pods_keep_what_the_device_plugin_gave_when_dra_takes_its_place(self):
        kubelet = self.start(DraKubelet)
        plugin = self.driver()
        self.check_healthy(kubelet, {UUID, SECOND_UUID})
        self.assertEqual(kubelet.run_pod(OTHER_POD), UUID)
        plugin.kill()
        self.configure()
        driver = self.driver()
        kubelet.registered()
        self.check_published({SECOND}, driver)
        claim = self.api.allocate("one", FIRST)
        self.assertIn(f"the pod {OTHER_POD} has it", self.error_of(kubelet.prepare(claim), claim))

    def test_claims_keep_what_they_have_when_the_device_plugin_takes_the_place_of_dra(self):
        kubelet, driver = self.both()
        claim = self.api.allocate("one", FIRST)
        self.names_of(kubelet.prepare(claim), claim)
        driver.kill()
        self.stage.path("/etc/holdfast/config.yaml").write_text(CONFIG)
        self.driver()
        self.check_healthy(kubelet, {SECOND_UUID})
        self.assertIn("the claim training/one has it", kubelet.ask("allocate", GPU, UUID)["message"])
        kubelet.delete_pod(POD)
        self.check_healthy(kubelet, {UUID, SECOND_UUID}, 60)

    def test_a_driver_that_has_lost_its_file_offers_no_device_of_a_claim_to_pods(self):
        kubelet, driver = self.both(more="")
        claim = self.api.allocate("one", FIRST)
        self.names_of(kubelet.prepare(claim), claim)
        driver.kill()
        self.stage.path(f"{OWN}/claims.json").unlink()
        self.driver()
        kubelet.registered()
        self.check_healthy(kubelet, {SECOND_UUID})
        self.assertIn("the claim training/one has it", kubelet.ask("allocate", GPU, UUID)["message"])

    # What it gives

    def test_a_container_with_a_claim_opens_its_device_and_nothing_else(self):
        kubelet, _ = self.both()
        claim = self.api.allocate("one", SECOND)
        names = self.names_of(kubelet.prepare(claim), claim)
        self.assertEqual(names, [f"nvidia.com/gpu={SECOND_UUID}"])
        options = tuple(argument for name in names for argument in ("--device", name))
        with engines.podman("v1", gpu=False, place=lambda _: contextlib.nullcontext(self.stage), options=options) as container:
            for path in engines.GPU_NODES:  # which the helper created in there
                if path not in ["/dev/nvidia1", *SET]:
                    (pathlib.Path(f"/proc/{container.pid}/root") / path[1:]).unlink()
            self.check_opens_exactly(container, ["/dev/nvidia1", *SET])

    def test_claims_are_prepared_as_often_as_kubelet_likes(self):
        kubelet, _ = self.both()
        one, two = self.api.allocate("one", FIRST), self.api.allocate("two", SECOND, request="gpus/large")
        answer = kubelet.prepare(one, two)
        self.assertEqual(answer["claims"][two[2]]["devices"], [{"pool": "node1", "device": SECOND, "requests": ["gpus"], "cdi": [f"nvidia.com/gpu={SECOND_UUID}"]}])
        self.assertEqual(kubelet.prepare(one, two)["claims"], answer["claims"])
        both = self.api.allocate("both", FIRST, SECOND)
        self.assertIn("the claim training/one has it", self.error_of(kubelet.prepare(both), both))
        self.assertEqual(self.remembered(), {one[2], two[2]})
        self.assertEqual(kubelet.unprepare(one, two)["claims"], {one[2]: "", two[2]: ""})
        self.assertEqual(self.names_of(kubelet.prepare(both), both), [f"nvidia.com/gpu={UUID}", f"nvidia.com/gpu={SECOND_UUID}"])
        self.assertEqual(kubelet.unprepare(both)["claims"], {both[2]: ""})
        self.assertEqual(kubelet.unprepare(one)["claims"], {one[2]: ""}, "one that it does not know")
        self.assertEqual(self.remembered(), set())
        took = sorted(kubelet.prepare(one)["ms"] for _ in range(20))
        print(f"prepared in {took[10]:.1f} ms (median of 20, the longest {took[-1]:.1f} ms)", file=sys.stderr)

    def test_a_kubelet_that_knows_v1beta1_only(self):
        self.configure()
        kubelet = self.start(DraKubelet, "--old")
        driver = self.driver()
        self.assertEqual(kubelet.registered()["service"], "v1beta1.DRAPlugin")
        self.check_published({FIRST, SECOND}, driver)
        kubelet.health(**{FIRST.replace("-", "_"): "Healthy"})
        claim = self.api.allocate("one", FIRST)
        self.assertEqual(self.names_of(kubelet.prepare(claim), claim), [f"nvidia.com/gpu={UUID}"])
        self.assertEqual(kubelet.unprepare(claim)["claims"], {claim[2]: ""})

    def test_what_is_not_ours_is_refused_and_the_rest_is_prepared(self):
        kubelet, _ = self.both()
        good = self.api.allocate("good", FIRST)
        recreated = (*self.api.allocate("recreated", FIRST)[:2], "11111111-2222-3333-4444-555555555555")
        wrong = {
            self.api.allocate("foreign", FIRST, driver="gpu.nvidia.com"): "no device of the driver",
            self.api.allocate("elsewhere", FIRST, pool="node2"): "node2",
            self.api.allocate("unknown", "gpu-none"): "gpu-none",
            self.api.allocate("half", SECOND, "gpu-none"): "gpu-none",
            self.api.allocate("free"): "nothing is allocated",
            recreated: "UID",
            ("training", "absent", "22222222-2222-3333-4444-555555555555"): "does not have it",
            ("..", "one", "33333333-2222-3333-4444-555555555555"): "no name",
            ("training", "a/../../secrets", "44444444-2222-3333-4444-555555555555"): "no name",
        }
        answer = kubelet.prepare(good, *wrong)
        self.assertEqual(set(answer["claims"]), {good[2], *(claim[2] for claim in wrong)})
        self.names_of(answer, good)
        for claim, why in wrong.items():
            self.assertIn(why, self.error_of(answer, claim))
        self.assertEqual(self.remembered(), {good[2]})
        self.assertFalse(any("secrets" in request or ".." in request for request in self.api.requests))

    # Whole sets at every moment

    def test_without_uvm_a_clear_error_and_later_success(self):
        kubelet, driver = self.both(runtime="  make_nodes: false\n")
        claim = self.api.allocate("one", FIRST)
        self.stage.call("rm", "/dev/nvidia-uvm")
        self.assertIn("/dev/nvidia-uvm is missing", self.error_of(kubelet.prepare(claim), claim))
        self.assertEqual(self.remembered(), set())
        self.check_published(set(), driver)
        self.make_node("/dev/nvidia-uvm", UVM, 0)
        self.assertEqual(self.names_of(kubelet.prepare(claim), claim), [f"nvidia.com/gpu={UUID}"], "it does not wait for the cluster to know")
        self.check_published({FIRST, SECOND}, driver)

    def test_a_node_with_stale_numbers_is_not_given(self):
        kubelet, driver = self.both(runtime="  make_nodes: false\n")
        claim = self.api.allocate("one", FIRST)
        self.make_node("/dev/nvidia-uvm", UVM - 1, 0)
        self.assertIn("the driver has", self.error_of(kubelet.prepare(claim), claim))
        self.make_node("/dev/nvidia-uvm", UVM, 0)
        self.names_of(kubelet.prepare(claim), claim)

    def test_the_spec_has_the_numbers_of_this_moment(self):
        """The driver was loaded again, with another major for nvidia-uvm."""
        devices = self.stage.path("/proc/devices").read_text()
        self.stage.path("/run/devices").write_text(devices)
        self.configure()
        kubelet = self.start(DraKubelet)
        spec = self.stage.path("/run/cdi/holdfast-nvidia.yaml")
        with self.stage.changed("mount --bind /run/devices /proc/devices") as branch:
            driver = self.driver(branch)
            kubelet.registered()
            self.check_published({FIRST, SECOND}, driver)
            claim = self.api.allocate("one", FIRST)
            self.names_of(kubelet.prepare(claim), claim)
            self.assertIn(f"major: {UVM}\n", spec.read_text())
            self.stage.path("/run/devices").write_text(devices.replace(f"{UVM} nvidia-uvm", f"{UVM - 3} nvidia-uvm"))
            self.names_of(kubelet.prepare(claim), claim)
            self.assertNotIn(f"major: {UVM}\n", spec.read_text())
            self.assertIn(f"major: {UVM - 3}\n", spec.read_text())

    # Restarts and failures

    def test_a_restart_between_prepare_and_unprepare(self):
        kubelet, driver = self.both()
        claim = self.api.allocate("one", FIRST)
        names = self.names_of(kubelet.prepare(claim), claim)
        driver.kill()
        self.assertEqual(self.remembered(), {claim[2]})
        driver = self.driver()
        kubelet.registered()
        self.api.stop()
        self.assertEqual(self.names_of(kubelet.prepare(claim), claim), names, "what was prepared needs no API server")
        self.assertEqual(kubelet.unprepare(claim)["claims"], {claim[2]: ""})
        self.assertEqual(self.remembered(), set())
        self.assertIn("cannot be read", self.error_of(kubelet.prepare(claim), claim))

    def test_an_update_knows_what_the_old_instance_prepared_after_it_started(self):
        kubelet, old = self.both()
        fresh = self.driver()
        self.assertTrue(eventually(lambda: any("not-registered" in line for line in fresh.lines)), fresh.lines)
        one, two, again = self.api.allocate("one", FIRST), self.api.allocate("two", SECOND), self.api.allocate("again", FIRST)
        self.names_of(kubelet.prepare(one), one)
        old.kill(signal.SIGTERM)
        kubelet.registered()
        self.names_of(kubelet.prepare(two), two)
        self.assertEqual(self.remembered(), {one[2], two[2]})
        self.assertIn("the claim training/one has it", self.error_of(kubelet.prepare(again), again))

    def test_a_damaged_file_of_claims_is_forgotten(self):
        kubelet, driver = self.both()
        claim = self.api.allocate("one", FIRST)
        kubelet.prepare(claim)
        file = self.stage.path(f"{OWN}/claims.json")
        whole = file.read_text()
        for damaged in (whole[: len(whole) // 2], "", "\0" * 100, "[" * 100000, '{"version":1,"claims":[{"uid":7}]}'):
            driver.kill()
            file.write_text(damaged)
            driver = self.driver()
            self.assertTrue(eventually(lambda: any(" registered " in line for line in driver.lines)), (damaged[:40], driver.lines))
            kubelet.registered()
            self.assertTrue(eventually(lambda: any("claims-forgotten" in line for line in driver.lines)), driver.lines)
            self.assertEqual(kubelet.unprepare(claim)["claims"], {claim[2]: ""})
            self.names_of(kubelet.prepare(claim), claim)
            self.assertEqual(self.remembered(), {claim[2]})

    def test_without_the_api_server_claims_fail_clearly_and_at_once(self):
        kubelet, driver = self.both()
        claim = self.api.allocate("one", FIRST)
        self.api.stop()
        answer = kubelet.prepare(claim)
        self.assertIn("cannot be read", self.error_of(answer, claim))
        self.assertLess(answer["ms"], 10000)
        self.api.start()
        self.names_of(kubelet.prepare(claim), claim)

    def test_an_api_server_that_does_not_answer(self):
        kubelet, driver = self.both()
        claims = [self.api.allocate(f"claim-{number}", FIRST) for number in range(5)]
        self.api.delay = 100
        answer = kubelet.prepare(*claims)
        for claim in claims:
            self.assertIn("cannot be read", self.error_of(answer, claim))
        self.assertLess(answer["ms"], 40000, "kubelet gives up after 45 s")
        self.api.delay = 0
        self.names_of(kubelet.prepare(claims[0]), claims[0])

    def test_it_ends_while_the_api_server_does_not_answer(self):
        kubelet, driver = self.both()
        self.api.delay = 100
        kubelet.process.stdin.write(" ".join(["prepare", DRIVER, POD, *self.api.allocate("one", FIRST)]) + "\n")
        kubelet.process.stdin.flush()
        time.sleep(0.5)
        started = time.monotonic()
        self.assertEqual(driver.kill(signal.SIGTERM), 0, driver.lines)
        self.assertLess(time.monotonic() - started, 10)

    def test_comes_before_kubelet_and_the_api_server(self):
        self.api.stop()
        self.configure()
        driver = self.driver()
        time.sleep(1)
        kubelet = self.start(DraKubelet)
        kubelet.registered()
        self.api.start()
        self.check_published({FIRST, SECOND}, driver, 60)
        for _ in range(3):
            kubelet.kill()
            kubelet = self.start(DraKubelet)
            kubelet.registered()
        claim = self.api.allocate("one", FIRST)
        self.names_of(kubelet.prepare(claim), claim)

    def test_the_guard_is_told_by_kubelets_own_file(self):
        """kubelet's file names the CDI devices: the nodes of the claim are owed to the container of its pod that names them, and to no other one."""
        kubelet, _ = self.both()
        claim = self.api.allocate("one", SECOND)
        self.names_of(kubelet.prepare(claim), claim)
        state = json.loads(json.loads(self.stage.path("/var/lib/kubelet/dra_manager_state").read_text())["Data"])
        device, = state["ClaimInfoStateList"][0]["DriverState"][DRIVER]["Devices"]
        self.assertEqual(device["CDIDeviceIDs"], [f"nvidia.com/gpu={SECOND_UUID}"])
        with self.container_of(POD) as owner, self.container_of(OTHER_POD) as other:
            explain = lambda pid: json.loads(self.stage.run(f"{BIN}/holdfast", "explain", f"pid:{pid}", "-o", "json").stdout)  # noqa: E731
            doctor = lambda pid: json.loads(self.stage.run(f"{BIN}/holdfast", "doctor", f"pid:{pid}", "-o", "json").stdout)  # noqa: E731
            believed = {one["source"]: one["believed"] for one in explain(owner)["claims"]}
            self.assertEqual(believed, {"dra": True, "cdi": True})
            self.assertIn("resource claim training/one", [one["where"] for one in explain(owner)["claims"]])
            self.assertEqual({node["path"] for node in explain(owner)["nodes"]}, {"/dev/nvidia1", *SET})
            self.assertIn("HF-105", [one["code"] for one in doctor(owner)["findings"]])
            self.assertEqual({one["source"]: one["believed"] for one in explain(other)["claims"]}, {"cdi": False})
            self.assertEqual(explain(other)["nodes"], [])
            self.assertEqual(kubelet.unprepare(claim)["claims"], {claim[2]: ""})
            self.assertEqual(explain(owner)["nodes"], [], "what it names by itself grants nothing")

    @contextlib.contextmanager
    def container_of(self, uid: str):
        """The first process of a container of runc in the cgroup of a pod, which names the second GPU as the CRI does, and got nothing."""
        name, runc = secrets.token_hex(32), (engines.program("runc"), "--root", "/run/runc")
        with engines.scratch_directory() as directory:
            cgroup = f"/kubepods/besteffort/pod{uid}/{name}"
            engines.write_bundle(directory, cgroup, False)
            spec = json.loads((directory / "config.json").read_text())
            prefix = "io.kubernetes.cri"
            spec["annotations"] = {f"{prefix}.container-type": "container", f"{prefix}.container-name": "main", f"{prefix}.sandbox-name": "train", f"{prefix}.sandbox-namespace": "training", "cdi.k8s.io/gpu": f"nvidia.com/gpu={SECOND_UUID}"}
            (directory / "config.json").write_text(json.dumps(spec))
            self.stage.cgroups.add(cgroup)
            with engines.cleanup(lambda: self.stage.call(*runc, "delete", "-f", name)):
                self.stage.call(*runc, "run", "-d", "--bundle", f"{directory}", name)
                yield json.loads(self.stage.call(*runc, "state", name))["pid"]

    def test_what_the_config_says_is_checked(self):
        for text, why in (
            ("kube: {dra: {enabled: true}, api: {enabled: off}}\n", "API server"),
            ("kube: {dra: {driver: Not/A/Name}}\n", "kube.dra.driver"),
            ("kube: {device_plugin: false}\n", "kube.device_plugin"),
        ):
            self.stage.path("/etc/holdfast/config.yaml").write_text(CONFIG + text)
            done = self.stage.run(f"{BIN}/holdfast-kube", "--check-config")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done)
            self.assertIn(why, done.stderr)
        self.configure()
        done = self.stage.run(f"{BIN}/holdfast-kube", "--check-config")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn(DRIVER, done.stdout)


if __name__ == "__main__":
    run_suite()
