#!/usr/bin/env python3
"""`holdfast cpu` from the outside: kubelet's recorded tables through the commands, real cpusets, bad input."""

import contextlib
import json
import os
import pathlib
import re
import secrets
import subprocess
import tempfile
import unittest
import uuid
import xml.etree.ElementTree

import engines
from support import holdfast, run_suite, why_not

VECTORS = pathlib.Path(os.environ.get("HOLDFAST_VECTORS", pathlib.Path(__file__).parents[2] / "../shared/vectors"))
TABLES = VECTORS / "cpu/kubelet-tables.json"


class CpuCase(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="hf-e2e-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def file(self, name: str, content) -> str:
        path = self.directory / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def cpu(self, *arguments: str, status: int = 0) -> str:
        done = holdfast("cpu", *arguments)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *arguments: str, status: int = 0) -> dict:
        return json.loads(self.cpu(*arguments, "-o", "json", status=status))

    def refused(self, contains: str, *arguments: str) -> None:
        done = holdfast("cpu", *arguments)
        self.assertEqual(done.returncode, 2, f"{arguments}: {done.stdout}{done.stderr}")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(contains, done.stderr)
        self.assertEqual(done.stdout, "")


@unittest.skipUnless(TABLES.exists(), f"no recorded tables at {TABLES}")
class Recorded(CpuCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.tables = json.loads(TABLES.read_text())

    def options(self, options) -> list[str]:
        return [argument for name, value in (options or {}).items() if value for argument in ("--option", f"{name}=true")]

    def test_takes_are_planned_as_kubelet_takes_them(self):
        for case in self.tables["take_cases"]:
            options = {
                "distribute-cpus-across-numa": case["algorithm"] == "distributed",
                "full-pcpus-only": case.get("cpu_group_size", 1) > 1,
                "distribute-cpus-across-cores": case["sort"] == "spread",
                "prefer-align-cpus-by-uncorecache": case.get("prefer_align_uncore", False),
            }
            topology = self.file("topology.json", self.tables["topologies"][case["topology"]])
            arguments = ["plan", "--cpus", str(case["num_cpus"]), "--free", case["available"], "--topology", topology]
            if case["num_cpus"] % case.get("cpu_group_size", 1) != 0:
                continue  # the policy refuses half a core before anything is taken
            with self.subTest(case["name"]):
                plan = self.json(*arguments, *self.options(options), status=1 if case["error"] else 0)
                self.assertEqual((plan["cpus"], plan["error"]), (case["result"], case["error"]))

    def scenario_of(self, case) -> dict:
        """Whatever is allocated before becomes a pod that asks for just that, by a hint that cannot be refused."""
        return {
            "topology": self.tables["topologies"][case["policy"]["topology"]],
            "options": {name: value for name, value in case["policy"]["options"].items() if value},
            "reserved": case["policy"]["reserved"],
            "ops": [
                {
                    "op": "allocate",
                    "pod": case["pod"]["uid"],
                    "container": case["container"],
                    "hint_numa": case["hint"]["numa"],
                    "pod_containers": [
                        {"name": c["name"], "type": c["type"], "cpus": c["requests"].get("cpu_milli", 0) / 1000}
                        for c in case["pod"]["containers"]
                    ],
                }
            ],
        }

    def test_containers_of_a_fresh_machine_are_simulated_as_kubelet_serves_them(self):
        served = 0
        for case in self.tables["allocate"]:
            strict = case["policy"]["options"].get("strict-cpu-reservation")
            online = {row[0] for row in self.tables["topologies"][case["policy"]["topology"]]["cpus"]}
            reserved = parse(case["policy"]["reserved"])
            fresh = parse(case["before"]["default_cpuset"]) == (online - reserved if strict else online)
            if not fresh or case["before"]["assignments"] or case["pod"]["qos"] != "Guaranteed" or "pod_level" in case["pod"]:
                continue
            served += 1
            with self.subTest(case["case"]):
                scenario = self.file("scenario.json", self.scenario_of(case))
                answer = self.json("simulate", scenario, status=1 if case["error"] else 0)
                step = answer["steps"][0]
                given = case["after"]["assignments"].get(case["pod"]["uid"], {}).get(case["container"], "")
                self.assertEqual((step["result"], step["error"]), (given, case["error"]))
                self.assertEqual(step["default_after"], case["after"]["default_cpuset"])
        self.assertGreater(served, 20)

    def test_checkpoints_are_judged_as_kubelet_judges_them(self):
        for case in self.tables["checkpoint_restore"]:
            if not case["file_content"] or case["gate_PodLevelResourceManagers"] or case["initial_containers"]:
                continue
            with self.subTest(case["case"]):
                path = self.file("cpu_manager_state", case["file_content"])
                only_other_gate = "PodLevelResourceManagers disabled" in case["case"] and case["error"]
                state = self.json("state", path, "--policy", case["policy_name"],
                                  status=1 if case["error"] and not only_other_gate else 0)
                if only_other_gate:
                    self.assertIn("PodLevelResourceManagers", state["notes"][0])
                elif case["error"]:
                    self.assertIn(case["expected_error_substring"], state["problems"][0]["kubelet_says"])
                else:
                    self.assertEqual(state["shared"], case["state"]["default_cpuset"])


def parse(text: str) -> set[int]:
    cpus: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


@contextlib.contextmanager
def pod_container(quality: str):
    """A container of runc in the cgroup of a pod, confined to CPU 1, with a name as containerd notes it."""
    uid, name = str(uuid.uuid4()), secrets.token_hex(32)
    runc = ("runc", "--root", "/run/runc")
    with engines.scratch_directory() as directory, engines.view("v1") as machine:
        cgroup = f"/kubepods{quality}/pod{uid}/{name}"
        engines.write_bundle(directory, cgroup, False)
        spec = json.loads((directory / "config.json").read_text())
        spec["annotations"] = {
            "io.kubernetes.cri.container-type": "container",
            "io.kubernetes.cri.container-name": "main",
            "io.kubernetes.cri.sandbox-name": "p",
        }
        (directory / "config.json").write_text(json.dumps(spec))
        machine.cgroups.add(cgroup)
        with engines.cleanup(lambda: machine.call(*runc, "delete", "-f", name)):
            machine.call(*runc, "run", "-d", "--bundle", str(directory), name)
            machine.call(*runc, "update", "--cpuset-cpus", "1", name)
            yield uid, json.loads(machine.call(*runc, "state", name))["pid"]


class Commands(CpuCase):
    def test_this_machine_is_what_the_kernel_says(self):
        topology = self.json("topology")
        online = parse(pathlib.Path("/sys/devices/system/cpu/online").read_text().strip())
        self.assertEqual({row[0] for row in topology["cpus"]}, online)
        self.assertIn("socket 0", self.cpu("topology"))

    def test_a_map_is_a_topology_again(self):
        for source in ("dgx-a100", "synthetic:pack:2 numa:2 l3:2 core:4 pu:2"):
            first = self.json("topology", "--from", source)
            again = self.json("topology", "--from", self.file("t.json", first))
            first.pop("source"), again.pop("source")
            self.assertEqual(first, again)

    def test_a_picture_has_every_cpu_once_and_the_owners_in_it(self):
        state = '{"policyName":"static","defaultCpuSet":"0-1,4-15","entries":{"u<&>":{"c":"2-3"}},"checksum":0}'
        svg = self.cpu("topology", "--from", "workstation", "--state", self.file("state", state), "-o", "svg")
        root = xml.etree.ElementTree.fromstring(svg)
        cells = [rect for rect in root.iter("{http://www.w3.org/2000/svg}rect") if rect.get("class") == "cpu"]
        self.assertEqual(len(cells), 16)
        self.assertEqual(root.get("viewBox"), f"0 0 {root.get('width')} {root.get('height')}")
        titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(sorted(titles)[:2], ["CPU 0", "CPU 1"])
        self.assertIn("CPU 2, u<&>/c", titles)
        text = self.cpu("topology", "--from", "workstation", "--state", self.file("state", state))
        self.assertIn("2a+10", text)
        self.assertIn("a = u<&>/c: 2-3", text)

    def test_hwlocs_own_xml_is_read(self):
        if subprocess.run(["sh", "-c", "command -v lstopo-no-graphics"], stdout=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no lstopo here")
        path = self.directory / "machine.xml"
        subprocess.run(["lstopo-no-graphics", "--input", "pack:2 numa:2 l3:1 core:4 pu:2", str(path)], check=True)
        self.assertEqual(self.json("topology", "--from", str(path))["num_cpus"], 32)

    def test_a_plan_has_reasons(self):
        plan = self.json("plan", "--cpus", "20", "--topology", "dgx-a100", "--near-device", "/dev/nvidia0")
        self.assertEqual(plan["cpus"], "48-57,176-185")
        self.assertEqual(plan["numa"], [{"node": 3, "cpus": "48-57,176-185"}])
        self.assertIn("where the devices sit", plan["steps"][0]["because"])
        text = self.cpu("plan", "--cpus", "20", "--topology", "dgx-a100", "--near-device", "nvidia0")
        self.assertTrue(text.startswith("48-57,176-185\n"), text)

    def test_the_table_of_the_docs_is_true(self):
        text = (pathlib.Path(__file__).parents[2] / "docs/CPU.md").read_text()
        rows = re.findall(r"^\| `(--cpus[^`]*)` \| ([0-9,-]+) \|", text, flags=re.MULTILINE)
        self.assertGreater(len(rows), 5)
        for options, cpus in rows:
            with self.subTest(options):
                self.assertEqual(self.json("plan", "--topology", "dgx-a100", *options.split())["cpus"], cpus)

    def test_what_cannot_be_done_is_reported_with_kubelets_message(self):
        plan = self.json("plan", "--cpus", "17", "--topology", "workstation", status=1)
        self.assertEqual(plan["error"], "not enough cpus available to satisfy request: requested=17, available=16")
        text = self.cpu("plan", "--cpus", "3", "--topology", "workstation", "--option", "full-pcpus-only=true", status=1)
        self.assertIn("SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2", text)

    def test_kubelets_hang_ends_and_its_alias_is_right(self):
        full = ("--option", "full-pcpus-only=true", "--option", "distribute-cpus-across-numa=true")
        hang = self.json("plan", "--topology", "synthetic:pack:2 numa:2 core:10 pu:2", "--reserved", "0,20,40,60",
                         "--cpus", "70", *full)
        self.assertEqual(len(parse(hang["cpus"])), 70)
        alias = self.json("plan", "--topology", "dgx-a100", "--cpus", "128", "--option", "distribute-cpus-across-numa=true")
        self.assertEqual([entry["node"] for entry in alias["numa"]], [0, 1, 2, 3])

    def test_a_scenario_serves_init_sidecar_and_app(self):
        containers = [
            {"name": "i", "type": "init", "cpus": 4},
            {"name": "s", "type": "sidecar", "cpus": 2},
            {"name": "a", "type": "app", "cpus": 4},
            {"name": "b", "type": "app", "cpus": 0.5},
        ]
        op = lambda name: {"op": "allocate", "pod": "p", "container": name, "hint_numa": None, "pod_containers": containers}
        scenario = {
            "topology": "workstation",
            "reserved": "0",
            "ops": [op("i"), op("s"), op("a"), op("b"), {"op": "remove", "pod": "p", "container": "s"}],
        }
        steps = self.json("simulate", self.file("s.json", scenario))["steps"]
        init, sidecar, app = (parse(step["result"]) for step in steps[:3])
        self.assertTrue(sidecar < init)  # an init container's CPUs are used again
        self.assertFalse(sidecar & app)
        self.assertEqual(steps[3]["result"], "")
        self.assertEqual(parse(steps[4]["default_after"]), parse(steps[3]["default_after"]) | (sidecar - init))

    def test_a_scenarios_topology_is_searched_beside_it(self):
        self.file("machine.json", self.json("topology", "--from", "workstation"))
        scenario = {"topology": "machine.json", "ops": [{"op": "allocate", "pod": "p", "container": "c", "cpus": 2}]}
        self.assertEqual(self.json("simulate", self.file("s.json", scenario))["steps"][0]["result"], "0,8")


class States(CpuCase):
    GOOD = '{"policyName":"static","defaultCpuSet":"0","entries":{"20be37a85e389e305fa8ec82c962a309":{"e":"1"}},"checksum":2562873961}'
    TWO = "synthetic:pack:1 core:2 pu:1"

    def test_a_sound_state_is_shown(self):
        state = self.json("state", self.file("s", self.GOOD), "--topology", self.TWO, "--reserved", "0")
        self.assertTrue(state["sound"])
        self.assertEqual(state["entries"], [{"pod": "20be37a85e389e305fa8ec82c962a309", "container": "e", "cpus": "1"}])

    def test_every_rule_of_a_restart_has_its_message(self):
        table = [
            ("", "unexpected end of JSON input"),
            (self.GOOD.replace('"0"', '"0-1"'), "json: cannot unmarshal object into Go struct field"),
            (unchecked("", {"u": {"c": "1"}}), "default cpuset cannot be empty"),
            (unchecked("1", {"u": {"c": "0"}}), 'not all reserved cpus: "0" are present in defaultCpuSet: "1"'),
            (unchecked("0-1", {"u": {"c": "1"}}), 'pod: u, container: c cpuset: "1" overlaps with default cpuset "0-1"'),
            (unchecked("0-2", {}), 'current set of available CPUs "0-1" doesn\'t match with CPUs in state "0-2"'),
        ]
        for text, message in table:
            with self.subTest(message):
                state = self.json("state", self.file("s", text), "--topology", self.TWO, "--reserved", "0", status=1)
                self.assertIn(message, state["problems"][0]["kubelet_says"])
                self.assertTrue(state["cure"])
        strict = self.json("state", self.file("s", unchecked("0-1", {})), "--topology", self.TWO, "--reserved", "0",
                           "--option", "strict-cpu-reservation=true", status=1)
        self.assertIn("some of strictly reserved cpus", strict["problems"][0]["kubelet_says"])
        other = self.json("state", self.file("s", self.GOOD), "--topology", self.TWO, "--policy", "none", status=1)
        self.assertIn('configured policy "none" differs', other["problems"][0]["kubelet_says"])

    def test_a_policy_that_does_not_exist_is_none(self):
        for text in ("{}", '{"policyName":"other","defaultCpuSet":"0-1","checksum":0}', '{"policyNae":"static","checksum":0}'):
            state = self.json("state", self.file("s", text), "--topology", self.TWO, status=1)
            self.assertIn("differs from state checkpoint policy", state["problems"][0]["kubelet_says"])

    def test_containers_known_by_id_count(self):
        text = '{"policyName":"static","defaultCpuSet":"0","entries":{"0123abcd":"1"},"checksum":0}'
        state = self.json("state", self.file("s", text), "--topology", self.TWO)
        self.assertEqual((state["format"], state["unnamed"]), ("v1", [{"id": "0123abcd", "cpus": "1"}]))

    def test_what_kubelet_does_not_notice_we_do(self):
        path = self.file("s", unchecked("0", {"u": {"c": "1-2"}, "v": {"c": "2-3"}}))
        state = self.json("state", path, "--topology", "synthetic:core:4 pu:1", status=1)
        self.assertEqual(state["problems"], [{"what": "CPU 2 belongs to two pods: u and v", "kubelet_says": None}])

    def test_a_state_is_rebuilt_from_the_cpuset_of_a_real_container(self):
        if reason := why_not():
            self.skipTest(reason)
        if len(parse(pathlib.Path("/sys/devices/system/cpu/online").read_text().strip())) < 2:
            self.skipTest("needs two CPUs")
        path = str(self.directory / "cpu_manager_state")
        arguments = ("state", path, "--rebuild", "--reserved", "0")
        with pod_container("") as (uid, _):
            rebuilt = self.json(*arguments)
            self.assertEqual(rebuilt["entries"], [{"pod": uid, "container": "main", "cpus": "1"}], rebuilt)
            self.assertNotIn(1, parse(rebuilt["shared"]))
            self.assertTrue(self.json("state", path, "--reserved", "0")["sound"])
        with pod_container("/besteffort") as (uid, pid):
            os.sched_setaffinity(pid, {1})
            self.refused("is sound", *arguments)
            pool = self.json(*arguments, "--force")
            self.assertEqual(pool["entries"], [], "only Guaranteed pods have CPUs of their own")
            self.assertIn("Guaranteed", " ".join(pool["notes"]))

    def test_a_lost_state_is_kept_aside(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        path = self.file("cpu_manager_state", "{ torn")
        again = ("state", path, "--rebuild", "--reserved", "0")
        self.refused("--rebuild needs --reserved", "state", path, "--rebuild")
        self.refused("rebuilds it by itself", "state", "/run/holdfast/cpus/cpu_manager_state", "--rebuild", "--reserved", "0")
        dry = self.json(*again, "--dry-run", status=1)
        self.assertEqual(pathlib.Path(path).read_text(), "{ torn")
        rebuilt = self.json(*again)
        self.assertEqual(dry["shared"], rebuilt["shared"])
        self.assertEqual(pathlib.Path(path + ".damaged").read_text(), "{ torn")
        self.assertTrue(self.json("state", path)["sound"])
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.refused("is sound", *again)
        self.refused("is sound", *again, "--dry-run")
        self.json(*again, "--force")
        self.assertTrue(pathlib.Path(path + ".damaged.1").exists())


def unchecked(shared: str, entries: dict) -> str:
    return json.dumps({"policyName": "static", "defaultCpuSet": shared, "entries": entries, "checksum": 0})


class BadInput(CpuCase):
    def test_of_plans(self):
        on = ("plan", "--topology", "workstation", "--cpus", "2")
        self.refused("3-1", *on, "--free", "3-1")
        self.refused("1-", *on, "--free", "1-")
        self.refused("0-99999999999", *on, "--free", "0-99999999999")
        self.refused("99", *on, "--free", "0-99")
        self.refused("99", *on, "--reserved", "99")
        self.refused('unknown CPU Manager Policy option: "quick"', *on, "--option", "quick=true")
        self.refused("want NAME=true", *on, "--option", "full-pcpus-only")
        self.refused("can not be used at the same time", *on, "--option", "full-pcpus-only=true", "--option",
                     "distribute-cpus-across-cores=true")
        self.refused("no NUMA node 7", *on, "--hint", "7")
        self.refused("'nvidia9'", *on, "--near-device", "nvidia9")
        self.refused("--cpus", "plan", "--cpus", "-1", "--topology", "workstation")
        for count in ("many", "", "0x4", "99999999999"):
            self.refused("--cpus", "plan", "--cpus", count, "--topology", "workstation")
        self.refused("contradict", *on, "--near-device", "nvidia0", "--option", "prefer-device-numa=false")
        self.refused("hint", *on, "--hint", "")

    def test_of_topologies(self):
        rows = lambda *cpus: {"cpus": [[cpu, cpu, 0, 0, 0] for cpu in cpus]}
        self.refused("CPU 1 is missing", "topology", "--from", self.file("t", rows(0, 2)))
        self.refused("CPU 0 is there twice", "topology", "--from", self.file("t", rows(0, 0)))
        self.refused("no CPU", "topology", "--from", self.file("t", rows()))
        self.refused("/t: topology: line 1, column 2: this is no JSON", "topology", "--from", self.file("t", "not json"))
        self.refused("/t: topology: line 3, column 1: this is no JSON", "topology", "--from", self.file("t", '{\n "cpus": [1,\n}'))
        self.refused("/t: topology: it is no JSON object", "topology", "--from", self.file("t", "[]"))
        self.refused("no XML of hwloc's", "topology", "--from", self.file("t", "<topology"))
        # hwloc itself does not survive this one, and prints its own message for it.
        self.refused("none that hwloc can read", "topology", "--from", self.file("t", (
            '<topology version="2.0"><object type="Machine" os_index="0" cpuset="0xf" nodeset="0x1" '
            'complete_nodeset="0x1"></object></topology>')))
        self.refused("'nowhere'", "topology", "--from", "nowhere")
        self.refused("synthetic", "topology", "--from", "synthetic:what is this")
        self.refused("more than 8192", "topology", "--from", "synthetic:pack:99999 core:99999 pu:9")

    def test_of_scenarios(self):
        self.refused("never given", "simulate", self.file("s", {
            "topology": "workstation", "ops": [{"op": "remove", "pod": "p", "container": "c"}]}))
        self.refused("unknown CPU Manager Policy option", "simulate", self.file("s", {
            "topology": "workstation", "options": {"quick": True}, "ops": []}))
        self.refused("/s: scenario: it is nested too deep", "simulate", self.file("s", "[" * 100000))
        self.refused("/s: scenario: line 2, column 9: this is no JSON", "simulate", self.file("s", '{\n "ops": x}'))
        self.refused("/s: scenario: ops: want a list", "simulate", self.file("s", {"topology": "workstation"}))
        self.refused("/s: scenario: op 1: the machine has no NUMA node 9", "simulate", self.file("s", {
            "topology": "workstation", "ops": [{"op": "allocate", "pod": "p", "container": "c", "cpus": 1, "hint_numa": [9]}]}))
        self.refused("No such file", "simulate", str(self.directory / "nowhere"))

    def test_of_states(self):
        self.refused("No such file", "state", str(self.directory / "nowhere"))
        self.refused("want a regular file", "state", str(self.directory))

    def test_of_states_that_are_no_json(self):
        text = self.cpu("state", self.file("state", '{\n "policyName": static}'), status=1)
        self.assertIn("line 2, column 16: this is no JSON", text)


if __name__ == "__main__":
    run_suite(verbosity=1)
