#!/usr/bin/env python3
"""chart_test.py HOLDFAST HOLDFASTD HOLDFAST_KUBE: the chart and the manifest: what they are made of fits together and fits the programs."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

import chart

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))

from suite import run_suite  # noqa: E402

PROGRAMS = [str(pathlib.Path(sys.argv.pop(1)).resolve()) for _ in range(3)]
HOLDFAST, HOLDFASTD, HOLDFAST_KUBE = PROGRAMS
EVENTS = {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}
NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}
NODE_STATUS = {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]}
SLICES = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["list", "create", "update", "delete"]}
CLAIMS = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"]}


def one(objects: list[dict], kind: str) -> dict:
    found = [value for value in objects if value["kind"] == kind]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} objects of kind {kind}")
    return found[0]


def kinds(objects: list[dict]) -> list[str]:
    return sorted(value["kind"] for value in objects)


def pod_of(objects: list[dict]) -> dict:
    return one(objects, "DaemonSet")["spec"]["template"]["spec"]


def containers_of(pod: dict) -> dict[str, dict]:
    return {value["name"]: value for value in pod.get("initContainers", []) + pod["containers"]}


def config_of(objects: list[dict]) -> dict:
    return yaml.safe_load(one(objects, "ConfigMap")["data"]["config.yaml"])


class Objects(unittest.TestCase):
    """What must be true of them, whatever the values are."""

    def check(self, objects: list[dict]) -> None:
        pod = pod_of(objects)
        self.check_names(objects, pod)
        self.check_security(pod)
        self.check_mounts(objects, pod)

    def check_names(self, objects: list[dict], pod: dict) -> None:
        daemon_set = one(objects, "DaemonSet")
        labels = daemon_set["spec"]["template"]["metadata"]["labels"]
        self.assertLessEqual(daemon_set["spec"]["selector"]["matchLabels"].items(), labels.items())
        for service in (value for value in objects if value["kind"] == "Service"):
            self.assertLessEqual(service["spec"]["selector"].items(), labels.items())
            ports = {port["name"] for value in pod["containers"] for port in value.get("ports", [])}
            self.assertIn(service["spec"]["ports"][0]["targetPort"], ports)
        account = one(objects, "ServiceAccount")["metadata"]
        self.assertEqual(pod["serviceAccountName"], account["name"])
        for binding in (value for value in objects if value["kind"] == "ClusterRoleBinding"):
            self.assertEqual(binding["roleRef"]["name"], one(objects, "ClusterRole")["metadata"]["name"])
            self.assertEqual(binding["subjects"], [{"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}])
        self.assertEqual(len({container["image"] for container in containers_of(pod).values()}), 1)

    def check_security(self, pod: dict) -> None:
        self.assertTrue(pod["hostPID"])
        self.assertFalse(pod["automountServiceAccountToken"])
        self.assertFalse(pod.get("hostNetwork") or pod.get("hostIPC"))
        for name, container in containers_of(pod).items():
            context = container["securityContext"]
            sees_host = any(mount["mountPath"] == "/host" for mount in container["volumeMounts"])
            self.assertEqual(context.get("privileged", False), sees_host, name)
            has_token = any(mount["name"] == "token" for mount in container["volumeMounts"])
            self.assertEqual(has_token, name == "kube", f"{name} has the token")
        for source in next((volume["projected"]["sources"] for volume in pod["volumes"] if volume["name"] == "token"), []):
            # kube-apiserver makes a token that is asked for with 3607 valid for a year.
            self.assertEqual(source.get("serviceAccountToken", {}).get("expirationSeconds", 3600), 3600)
        if "runtime-program" in containers_of(pod):
            context = containers_of(pod)["runtime-program"]["securityContext"]
            self.assertEqual((context["capabilities"], context["allowPrivilegeEscalation"]), ({"drop": ["ALL"]}, False))

    def check_mounts(self, objects: list[dict], pod: dict) -> None:
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        used = set()
        for name, container in containers_of(pod).items():
            mounts = container["volumeMounts"]
            used |= {mount["name"] for mount in mounts}
            paths = [mount["mountPath"] for mount in mounts]
            self.assertEqual(len(paths), len(set(paths)), name)
            if "/host" in paths:
                host = next(mount for mount in mounts if mount["mountPath"] == "/host")
                self.assertEqual(host["mountPropagation"], "HostToContainer", "mounts of the host that come later would be missing")
                self.assertNotIn("HOLDFAST_HOST_ROOT", [value["name"] for value in container.get("env", [])])
                self.assertIn("/host/etc/holdfast/config.yaml", paths)
        self.assertEqual(used, set(volumes))
        self.assertEqual(volumes["host"]["hostPath"]["path"], "/")
        self.assertEqual(volumes["config"]["configMap"]["name"], one(objects, "ConfigMap")["metadata"]["name"])

    def check_rights(self, objects: list[dict], *wanted: dict) -> None:
        self.assertEqual(one(objects, "ClusterRole")["rules"], list(wanted))

    def check_config(self, objects: list[dict], programs: tuple[str, ...] = (HOLDFASTD, HOLDFAST_KUBE)) -> None:
        """The programs understand it."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(one(objects, "ConfigMap")["data"]["config.yaml"])
            file.flush()
            for program in programs:
                done = subprocess.run([program, "--check-config", "--config", file.name], capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Manifest(Objects):
    """packaging/kubernetes/holdfast.yaml."""

    def setUp(self) -> None:
        self.objects = chart.objects_in(chart.MANIFEST.read_text())

    def test_is_made_of_this_chart(self) -> None:
        """Also where nothing can render the chart."""
        self.assertIn(f"{chart.MARK}{chart.digest()}\n", chart.MANIFEST.read_text(), "run tools/manifest")

    def test_fits_together(self) -> None:
        self.check(self.objects)
        wanted = ["ClusterRole", "ClusterRoleBinding", "ConfigMap", "DaemonSet", "Namespace", "ResourceQuota", "Service", "ServiceAccount"]
        wanted += 2 * ["ValidatingAdmissionPolicy"] + 2 * ["ValidatingAdmissionPolicyBinding"]
        self.assertEqual(kinds(self.objects), wanted)

    def test_gives_no_right_that_is_not_needed(self) -> None:
        self.check_rights(self.objects, EVENTS, NODE_STATUS)

    def test_has_a_config_that_the_programs_read(self) -> None:
        self.check_config(self.objects)

    def test_starts_programs_of_the_image(self) -> None:
        source = (chart.ROOT / "tools/image").read_text()
        directory = re.search(r'^DIRECTORY = "(.*)"', source, re.M)[1]
        programs = re.search(r"^PROGRAMS = \((.*)\)", source, re.M)[1]
        for container in containers_of(pod_of(self.objects)).values():
            path, _, name = container["command"][0].rpartition("/")
            self.assertEqual(path, f"/{directory}")
            self.assertIn(f'"{name}"', programs)

    def test_names_the_version_and_the_image_that_are_built(self) -> None:
        version = re.search(r"project\(holdfast VERSION ([\d.]+)", (chart.ROOT / "CMakeLists.txt").read_text())[1]
        about = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())
        self.assertEqual((about["version"], about["appVersion"]), (version, version))
        self.assertEqual(pod_of(self.objects)["containers"][0]["image"], f"localhost/holdfast:{version}")

    def test_copies_the_runtime_as_its_first_container_says(self) -> None:
        command = containers_of(pod_of(self.objects))["runtime-program"]["command"][1:]
        with tempfile.TemporaryDirectory(prefix="hf-chart-") as directory:
            command[command.index("--to") + 1] = directory
            done = subprocess.run([HOLDFAST, *command, "--dry-run"], capture_output=True, text=True, timeout=60, check=False)
        # Where the programs were not built together there is none beside it, which is said.
        self.assertTrue(done.returncode == 1 and "would" in done.stdout or "holdfast-runtime" in done.stderr, done.stdout + done.stderr)


class Values(unittest.TestCase):
    """values.yaml and its schema."""

    def setUp(self) -> None:
        self.schema = json.loads((chart.CHART / "values.schema.json").read_text())

    def errors(self, more: dict) -> list[str]:
        import jsonschema

        return [error.message for error in jsonschema.Draft7Validator(self.schema).iter_errors(chart.merged(chart.default_values(), more))]

    def test_the_schema_knows_every_value_and_no_other(self) -> None:
        def compare(values: dict, schema: dict, path: str) -> None:
            known = schema.get("properties")
            if known is None or schema.get("additionalProperties", True):
                return
            self.assertEqual(set(values), set(known) - {"global"}, path)
            for key, value in values.items():
                if isinstance(value, dict):
                    compare(value, known[key], f"{path}.{key}")

        for key, value in chart.default_values().items():
            self.assertIn(key, self.schema["properties"])
            if isinstance(value, dict) and key != "config":
                compare(value, self.schema["properties"][key], key)
        self.assertEqual(set(chart.default_values()), set(self.schema["properties"]) - {"global"})

    def test_the_schema_takes_the_defaults_and_refuses_mistakes(self) -> None:
        self.assertEqual(self.errors({}), [])
        self.assertEqual(self.errors({"config": {"cpus": {"manager": True}}, "runtime": {"install": True, "engine": "crio"}}), [])
        self.assertEqual(self.errors({"config": {"web": {"listen": "[::]:9465"}}, "kube": {"devicePlugin": True}}), [])
        for use in ("auto", "on", "off", True, False):
            self.assertEqual(self.errors({"config": {"kube": {"api": {"enabled": use}}}}), [])
        for wrong in (
            {"guard": {"mode": "heal"}},
            {"config": {"guard": {"mode": "mend"}}},
            {"config": {"gaurd": {}}},
            {"runtime": {"engine": "docker"}},
            {"runtime": {"directory": "opt/holdfast"}},
            {"runtime": {"directory": "/opt/holdfast/"}},
            {"runtime": {"install": True, "undo": True}},
            {"runtime": {"unit": "-k3s"}},
            {"runtime": {"spread": "60"}},
            {"kube": {"taint": "yes"}},
            {"monitoring": {"interval": "fast"}},
            {"image": {"repository": ""}},
            {"image": {"digest": "latest"}},
            {"kube": {"createDeviceClasses": "no"}},
            {"runtime": {"createRuntimeClass": "no"}},
            {"kube": {"devicePlugin": "yes"}},
            {"config": {"kube": {"dra": {"enabled": "yes"}}}},
            {"config": {"web": {"listen": "127.0.0.1:9465"}}},
            {"config": {"web": {"listen": "9465"}}},
            {"config": {"guard": {"shield": True}}},
            {"config": {"kube": {"api": {"enabled": "yes"}}}},
            {"config": {"kube": {"api": {"events": "off"}}}},
        ):
            self.assertNotEqual(self.errors(wrong), [], wrong)

    def test_the_schema_knows_the_sections_of_the_config(self) -> None:
        sections = yaml.safe_load((chart.ROOT / "packaging/config.yaml").read_text())
        self.assertLessEqual(set(sections), set(self.schema["properties"]["config"]["properties"]))


class Rendered(Objects):
    """The chart by the template engine of helm."""

    @classmethod
    def setUpClass(cls) -> None:
        if reason := chart.why_not():
            raise unittest.SkipTest(f"the chart is not rendered: {reason}")

    @unittest.skipUnless(shutil.which("helm"), "no helm")
    def test_helm_finds_nothing_wrong(self) -> None:
        done = subprocess.run(["helm", "lint", "--strict", chart.CHART], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_manifest_is_the_chart_with_its_defaults(self) -> None:
        done = subprocess.run([chart.ROOT / "tools/manifest", "--check"], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_switches_give_the_rights_that_they_need(self) -> None:
        taint = chart.render_objects({"kube": {"taint": True}})
        self.check(taint)
        self.check_rights(taint, EVENTS, NODE_STATUS, NODES | {"verbs": ["get", "patch"]})
        self.assertEqual(config_of(taint)["kube"], {"api": {"taint": True}})
        dra = chart.render_objects({"kube": {"dra": True}, "config": {"kube": {"mig": "mixed", "dra": {"driver": "gpu.example.com"}}}})
        self.check(dra)
        self.check_rights(dra, EVENTS, NODE_STATUS, NODES, SLICES, CLAIMS)
        self.assertEqual(config_of(dra)["kube"], {"mig": "mixed", "device_plugin": False, "dra": {"driver": "gpu.example.com", "enabled": True}})

    def test_on_and_off_may_be_what_helm_makes_of_them(self) -> None:
        for api, programs in (("off", (HOLDFASTD, HOLDFAST_KUBE)), ("on", (HOLDFASTD,))):  # with on, holdfast-kube looks for the API server, and this is no pod
            values = yaml.safe_load(f"config: {{guard: {{shield: off}}, kube: {{api: {{enabled: {api}, events: off}}}}}}")
            self.assertEqual(values["config"]["guard"]["shield"], False)
            self.check_config(chart.render_objects(values), programs)

    def test_keys_of_the_config_count_as_the_switches_do(self) -> None:
        taint = chart.render_objects({"config": {"kube": {"api": {"taint": True}}}})
        self.check_rights(taint, EVENTS, NODE_STATUS, NODES | {"verbs": ["get", "patch"]})
        dra = chart.render_objects({"config": {"kube": {"dra": {"enabled": True}}}})
        self.check_rights(dra, EVENTS, NODE_STATUS, NODES, SLICES, CLAIMS)
        self.assertEqual(config_of(dra)["kube"], {"device_plugin": False, "dra": {"enabled": True}})

    def test_what_the_config_switches_off_needs_no_right(self) -> None:
        for api, wanted in (
            ({"events": False}, [NODE_STATUS]),
            ({"condition": False, "enabled": "on"}, [EVENTS]),
            ({"enabled": False, "taint": True}, []),
            ({"enabled": "off"}, []),
        ):
            rules = one(chart.render_objects({"config": {"kube": {"api": api}}}), "ClusterRole")["rules"]
            self.assertEqual(rules or [], wanted, api)

    def test_names_that_look_like_numbers_stay_texts(self) -> None:
        for value in chart.render_objects({"serviceAccount": {"name": "1234"}, "priorityClassName": "10", "runtime": {"runtimeClass": "7", "install": True}}):
            self.assertIsInstance(value["metadata"]["name"], str)
            for binding in value.get("subjects", []):
                self.assertEqual(binding["name"], "1234")
            if value["kind"] == "DaemonSet":
                pod = value["spec"]["template"]["spec"]
                self.assertEqual((pod["serviceAccountName"], pod["priorityClassName"]), ("1234", "10"))
            for label in value["metadata"].get("labels", {}).values():
                self.assertIsInstance(label, str)

    def test_dra_ends_the_device_plugin_unless_it_is_wanted(self) -> None:
        for more, wanted in (
            ({}, None),
            ({"kube": {"dra": True}}, False),
            ({"kube": {"dra": True, "devicePlugin": True}}, True),
            ({"kube": {"dra": True}, "config": {"kube": {"device_plugin": True}}}, True),
            ({"kube": {"dra": True, "devicePlugin": None}}, False),
        ):
            config = config_of(chart.render_objects(more))
            self.assertIs(config.get("kube", {}).get("device_plugin"), wanted, more)

    def test_device_classes_come_with_dra_as_its_page_shows_them(self) -> None:
        page = (chart.ROOT / "docs/DRA.md").read_text()
        shown = [value for block in re.findall(r"```yaml\n(.*?)```", page, re.S) for value in chart.objects_in(block)]
        wanted = [(value["metadata"]["name"], value["apiVersion"], value["spec"]) for value in shown if value.get("kind") == "DeviceClass"]
        self.assertEqual(len(wanted), 2)
        found = [value for value in chart.render_objects({"kube": {"dra": True}}) if value["kind"] == "DeviceClass"]
        self.assertEqual([(value["metadata"]["name"], value["apiVersion"], value["spec"]) for value in found], wanted)
        other = chart.render_objects({"kube": {"dra": True}, "config": {"kube": {"dra": {"driver": "gpu.example.com"}}}})
        self.assertIn('attributes["gpu.example.com"]', str([value["spec"] for value in other if value["kind"] == "DeviceClass"]))
        self.assertNotIn("DeviceClass", kinds(chart.render_objects({"kube": {"dra": True, "enabled": False}})))

    def test_probes_ask_the_port_that_the_guard_listens_on(self) -> None:
        for listen, ports in (("[::]:9000", [9000]), ("0.0.0.0:9465", [9465]), ("none", [])):
            objects = chart.render_objects({"config": {"web": {"listen": listen}}, "monitoring": {"serviceMonitor": True}})
            self.check(objects)
            guard = containers_of(pod_of(objects))["guard"]
            self.assertEqual([port["containerPort"] for port in guard.get("ports", [])], ports)
            self.assertEqual(["readinessProbe" in guard, "ServiceMonitor" in kinds(objects)], [bool(ports)] * 2)
            for name in ("guard", "kube"):
                container = containers_of(pod_of(objects))[name]
                self.assertEqual(container["livenessProbe"]["exec"], {"command": [*container["command"], "--check-health"]})

    def test_without_the_device_plugin_there_is_no_right_at_all(self) -> None:
        objects = chart.render_objects({"kube": {"enabled": False}})
        self.check(objects)
        self.assertNotIn("ClusterRole", kinds(objects))
        self.assertNotIn("kube", containers_of(pod_of(objects)))

    def test_features_are_written_where_the_values_say(self) -> None:
        objects = chart.render_objects({"kube": {"features": True, "featuresFile": "/run/features"}})
        self.assertEqual(config_of(objects)["kube"]["features"], "/run/features")
        self.check_config(objects)

    def test_the_runtime_is_registered_and_removed_by_commands_that_exist(self) -> None:
        common = ["--restart", "--spread=60"]
        for values, wanted in (
            ({"install": True}, ["setup", "containerd", *common, "--may-fail"]),
            ({"install": True, "engine": "crio", "default": True}, ["setup", "crio", *common, "--may-fail", "--default"]),
            ({"undo": True, "config": "/etc/k0s/containerd.toml"}, ["setup", "containerd", *common, "--undo", "--config", "/etc/k0s/containerd.toml"]),
            ({"install": True, "unit": "k3s-agent", "spread": 0}, ["setup", "containerd", "--restart", "--spread=0", "--may-fail", "--unit=k3s-agent"]),
        ):
            objects = chart.render_objects({"runtime": values})
            self.check(objects)
            command = containers_of(pod_of(objects))["runtime-registration"]["command"][1:]
            self.assertEqual(command, wanted)
            self.assertEqual("RuntimeClass" in kinds(objects), "install" in values)
            with tempfile.TemporaryDirectory(prefix="hf-chart-") as directory:
                arguments = command[: command.index("--config")] if "--config" in command else command
                more = ["--dry-run", "--config", f"{directory}/config.toml"] + ([] if "undo" in values else ["--runtime-path", "/bin/true"])
                done = subprocess.run([HOLDFAST, *arguments, *more], capture_output=True, text=True, timeout=60, check=False)
            self.assertIn(done.returncode, (0, 1), done.stderr)

    def test_two_releases_have_no_object_in_common(self) -> None:
        switched_off = {"runtime": {"createRuntimeClass": False}, "kube": {"createDeviceClasses": False}}
        both = {"runtime": {"install": True}, "kube": {"taint": True, "dra": True}, "monitoring": {"serviceMonitor": True, "prometheusRule": True}}
        name = lambda value: (value["kind"], value["metadata"]["name"])  # noqa: E731
        first = {name(value) for value in chart.render_objects(both)}
        second = {name(value) for value in chart.render_objects(chart.merged(both, switched_off), release="other")}
        self.assertEqual(first & second, set())
        self.assertEqual({kind for kind, _ in first} - {kind for kind, _ in second}, {"RuntimeClass", "DeviceClass"})

    def test_the_runtime_class_keeps_pods_to_the_nodes_of_the_daemon_set(self) -> None:
        objects = chart.render_objects({"runtime": {"install": True}, "nodeSelector": {"engine": "k3s"}})
        found = one(objects, "RuntimeClass")
        self.assertEqual((found["handler"], found["scheduling"]), ("holdfast", {"nodeSelector": pod_of(objects)["nodeSelector"]}))
        self.assertEqual(found["scheduling"]["nodeSelector"]["engine"], "k3s")

    def test_an_image_may_be_named_by_its_digest(self) -> None:
        digest = f"sha256:{'0a' * 32}"
        for container in containers_of(pod_of(chart.render_objects({"image": {"tag": "2", "digest": digest}}))).values():
            self.assertEqual(container["image"], f"localhost/holdfast@{digest}")

    def test_an_older_kubernetes_is_named_with_the_way_out(self) -> None:
        for old in ("v1.29.14", "v1.29.9-gke.1", "v1.26.0"):
            with self.assertRaisesRegex(RuntimeError, "needs Kubernetes 1.30.*--set kube.ownNodeOnly=false"):
                chart.render(kubernetes=old)
            for more in ({"ownNodeOnly": False}, {"enabled": False}):
                self.check(chart.render_objects({"kube": more}, kubernetes=old))
        self.check(chart.render_objects(kubernetes="v1.30.0-gke.5"))

    def test_the_runtime_may_lie_in_another_directory(self) -> None:
        directory = "/var/lib/toolbox/holdfast"
        for install in (False, True):
            objects = chart.render_objects({"runtime": {"directory": directory, "install": install}, "config": {"cdi": {"class": "nvidia"}}})
            self.check(objects)
            self.check_config(objects)
            pod = pod_of(objects)
            program = containers_of(pod)["runtime-program"]
            self.assertEqual(program["command"][-2:], ["--to", f"/node{directory}"])
            self.assertEqual(program["volumeMounts"], [{"name": "programs", "mountPath": f"/node{directory}"}])
            self.assertIn({"name": "programs", "hostPath": {"path": directory, "type": "DirectoryOrCreate"}}, pod["volumes"])
            self.assertEqual(config_of(objects)["cdi"], {"class": "nvidia", "hook": f"{directory}/holdfast-runtime"})
            if install:
                self.assertEqual(containers_of(pod)["runtime-registration"]["command"][-2:], ["--runtime-path", f"{directory}/holdfast-runtime"])

    def test_monitoring_objects_come_with_their_switches(self) -> None:
        objects = chart.render_objects({"monitoring": {"serviceMonitor": True, "prometheusRule": True, "labels": {"release": "prometheus"}}})
        self.check(objects)
        monitor, rule = one(objects, "ServiceMonitor"), one(objects, "PrometheusRule")
        self.assertEqual(monitor["spec"]["endpoints"][0]["port"], one(objects, "Service")["spec"]["ports"][0]["name"])
        self.assertEqual(monitor["metadata"]["labels"]["release"], "prometheus")
        self.assertIn({"targetLabel": "job", "replacement": "holdfast"}, monitor["spec"]["endpoints"][0]["relabelings"])
        alerts = yaml.safe_load((chart.ROOT / "packaging/monitoring/alerts.yaml").read_text())
        self.assertEqual(rule["spec"], alerts)

    def test_what_an_account_may_write_is_kept_to_its_node(self) -> None:
        for more, names in (
            ({}, {"holdfast-own-nodes", "holdfast-own-events"}),
            ({"dra": True}, {"holdfast-own-nodes", "holdfast-own-events", "holdfast-own-slices"}),
            ({"ownNodeOnly": False, "dra": True}, set()),
            ({"enabled": False}, set()),
        ):
            objects = chart.render_objects({"kube": more})
            policies = {value["metadata"]["name"]: value["spec"] for value in objects if value["kind"] == "ValidatingAdmissionPolicy"}
            bindings = [value["spec"] for value in objects if value["kind"] == "ValidatingAdmissionPolicyBinding"]
            self.assertEqual(set(policies), names)
            self.assertEqual({binding["policyName"] for binding in bindings}, names)
            account = one(objects, "ServiceAccount")["metadata"]
            for policy in policies.values():
                self.assertIn(f"'system:serviceaccount:{account['namespace']}:{account['name']}'", policy["matchConditions"][0]["expression"])

    def test_a_quota_allows_the_priority_class(self) -> None:
        quota = one(chart.render_objects({}), "ResourceQuota")["spec"]
        self.assertEqual(quota["scopeSelector"]["matchExpressions"][0]["values"], ["system-node-critical"])
        for more in ({"priorityQuota": False}, {"priorityClassName": "mine"}, {"priorityClassName": ""}):
            self.assertNotIn("ResourceQuota", kinds(chart.render_objects(more)))

    def test_another_config_restarts_the_pods(self) -> None:
        def checksum(more: dict) -> str:
            return one(chart.render_objects(more), "DaemonSet")["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

        self.assertEqual(checksum({}), checksum({}))
        self.assertNotEqual(checksum({}), checksum({"config": {"guard": {"mode": "observe"}}}))

    def test_the_notes_say_how_to_take_the_runtime_back(self) -> None:
        if not chart.shutil.which("go"):
            self.skipTest("needs golang-go")
        self.assertIn("runtime.undo=true", chart.render({"runtime": {"install": True}}, notes=True))
        self.assertNotIn("runtime.undo=true", chart.render({}, notes=True))


if __name__ == "__main__":
    run_suite(verbosity=2)
