#!/usr/bin/env python3
"""The command line on real cgroups: every command, both cgroup versions, and the answers to bad arguments."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from manual import OPTION, commands, options_of, read_manual, section, synopses
from support import HOLDFAST, V1, V2, Case, errno_of_open, holdfast, holdfast_json, node, run_suite, scratch_cgroup

HOLDFASTD, KUBE = [sys.argv.pop(1) if len(sys.argv) > 1 and "/" in sys.argv[1] else "" for _ in range(2)]


def write(path: pathlib.Path, text: str) -> None:
    path.write_text(text)


class Arguments(Case):
    def test_bad_arguments_get_one_clear_line_and_exit_2(self):
        for arguments, names in [
            (("ps", "-o", "toml"), "toml"),
            (("ps", "--interval", "0"), "interval"),
            (("ps", "--interval", "soon"), "soon"),
            (("doctor", "hf-no-such-container"), "hf-no-such-container"),
            (("doctor", "--explain", "HF-999"), "HF-999"),
            (("doctor", "--explain", "../etc"), "../etc"),
            (("doctor", "-o", "wide"), "wide"),
            (("explain",), "CONTAINER"),
            (("explain", "hf-no-such-container"), "hf-no-such-container"),
            (("explain", ""), "no container ''"),
            (("explain", "\x1b[31m"), "?[31m"),
            (("devices", "nonsense"), "nonsense"),
            (("grant", "hf-no-such-container", "c 195:0 rw"), "hf-no-such-container"),
            (("rules", "container:"), "no container"),
            (("nonsense",), "no command 'nonsense'; there are ps, doctor, explain"),
            (("docter",), "no command 'docter'; did you mean doctor? (see holdfast --help)"),
            (("docter", "--help"), "no command 'docter'; did you mean doctor?"),
            (("help", "docter"), "no command 'docter'; did you mean doctor?"),
            (("cpu", "plam"), "no command 'plam'; did you mean plan? (see holdfast cpu --help)"),
            (("doctor", "--depp"), "no option '--depp'; did you mean --deep? (see holdfast doctor --help)"),
            (("ps", "--interval"), "(see holdfast ps --help)"),
            (("ps", "-x"), "holdfast: no option '-x' (see holdfast ps --help)\n"),
            (("rules", "dif"), "(did you mean the command diff?)"),
            (("rules", "dif", "pid:1", "pid:1"), "(did you mean the command diff?)"),
            (("version", "doctor"), "no command 'version'; did you mean --version? (see holdfast --help)"),
            (("watch", "--for", "10x"), "--for '10x': want a span such as 90s"),
            (("blame", "--since", "10x"), "--since '10x': want a span such as 90s"),
            (("doctor", "-owide"), "--output: wide not in {"),
            (("doctor", "-o=wide"), "wide not in {"),
            (("doctor", "-deep"), "no option '-deep'; did you mean --deep?"),
            (("cpu", "plan", "--option", "full-pcpus-only=true", "align-by-socket=true"), "--cpus is required"),
            (("cpu", "plan", "--cpus", "2", "--topology", "dgx-a100", "--near-device", "/dev/nvidai0"), "did you mean /dev/nvidia0?"),
            (("cpu", "assign", "x", "2", "--option", "full-pcpu-only"), "did you mean full-pcpus-only?"),
            (("cpu", "assign", "x", "2", "--option", "frog"), "there are align-by-socket, "),
            (("blame", "container:"), "no container"),
            (("blame", "--journal", "/no/such/journal"), "there is no directory /no/such/journal"),
            (("cdi", "generate", "--class", "nvidea"), "no device class 'nvidea'; did you mean nvidia?"),
            (("cdi", "generate", "-o", "toml"), "want yaml or json"),
            (("cdi", "resolve", "gpu0"), "want a name such as nvidia.com/gpu=0"),
            (("cpu", "plan", "--cpus", "2", "--option", "full-pcpu-only=true"), "did you mean full-pcpus-only?"),
            (("rules", "--bogus"), "--bogus"),
            (("rules", "pid:0"), "pid:0"),
            (("rules", "pid:x"), "pid:x"),
            (("rules", "pid:99999999"), "99999999"),
            (("rules", "pid:4294967297"), "pid:4294967297"),
            (("rules", "frog:1"), "frog:1"),
            (("rules", "container:hf-no-such-container"), "hf-no-such-container"),
            (("rules", "cgroup:relative"), "cgroup:relative"),
            (("rules", "cgroup:/no/such/cgroup"), "/no/such/cgroup"),
            (("rules", "cgroup:/a/../b"), "/a/../b"),
            (("rules", "program:4000000000"), "4000000000"),
            (("rules", "file:/no/such/file"), "/no/such/file"),
            (("rules", "file:/proc/self/status"), "line 1"),
            (("rules", "pid:1", "-o", "toml"), "toml"),
            (("rules", "pid:1", "--ask", "c:195"), "c:195"),
            (("rules", "pid:1", "pid:1", "--ask", "c:1:3:r"), "one target"),
            (("rules", "diff", "pid:1"), "B"),
            (("grant", "pid:1"), "RULE"),
            (("grant", "pid:1", "c 195:0"), "c 195:0"),
            (("grant", "cgroup:/", "c 195:0 rwx"), "c 195:0 rwx"),
            (("grant", "program:1", "c 195:0 rw"), "program:1"),
            (("grant", "file:/dev/null", "c 195:0 rw"), "file:/dev/null"),
            (("revoke", "cgroup:" + str(V2), "c 195:0 rw"), "root cgroup"),
            (("rules", "pid:1", "revoke", "pid:1", "c 1:3 r"), "revoke"),
            (("rules", "pid:1", "diff", "pid:1", "pid:1"), "two targets"),
            (("rules", "file:/dev/zero"), "regular file"),
            (("rules", "file:/tmp"), "regular file"),
        ]:
            with self.subTest(arguments=arguments):
                self.refused(2, names, *arguments)

    @unittest.skipUnless(HOLDFASTD and KUBE, "needs holdfastd and holdfast-kube as arguments")
    def test_the_daemons_answer_as_the_command_line_does(self):
        for program, arguments, text in [
            (HOLDFASTD, ("--check-confg",), "no option '--check-confg'; did you mean --check-config? (see holdfastd --help)"),
            (HOLDFASTD, ("start",), "unexpected argument 'start' (see holdfastd --help)"),
            (HOLDFASTD, ("version",), "unexpected argument 'version'; did you mean --version? (see holdfastd --help)"),
            (HOLDFASTD, ("-x",), "no option '-x' (see holdfastd --help)"),
            (HOLDFASTD, ("--tier", "poling"), "--tier: poling not in {tracepoints,files,polling} (see holdfastd --help)"),
            (HOLDFASTD, ("--log=txt",), "--log: txt not in {text,json} (see holdfastd --help)"),
            (KUBE, ("--nvidea-config", "x"), "no option '--nvidea-config'; did you mean --nvidia-config? (see holdfast-kube --help)"),
            (KUBE, ("--once", "-o", "toml"), "--output: toml not in {json,yaml} (see holdfast-kube --help)"),
            (KUBE, ("-o", "yaml"), "--output requires --once (see holdfast-kube --help)"),
            (KUBE, ("--onse", "--log", "json"), "no option '--onse'; did you mean --once? (see holdfast-kube --help)"),
        ]:
            with self.subTest(arguments):
                done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"{pathlib.Path(program).name}: {text}\n"))
        for program in (HOLDFASTD, KUBE):
            done = subprocess.run([program, "--help"], capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("--check-config", done.stdout)

    def test_help_and_version_are_there(self):
        self.assertIn("rules", self.ok("--help"))
        self.assertIn("--ask", self.ok("rules", "--help"))
        self.assertIn("--dry-run", self.ok("grant", "--help"))
        self.assertEqual(self.ok("help", "cpu", "plan"), self.ok("cpu", "plan", "--help"))
        self.assertRegex(self.ok("--version"), r"^holdfast \d+\.\d+\.\d+")
        for same in ("-V", "version"):
            self.assertEqual(self.ok(same), self.ok("--version"))

    def test_without_a_command_all_are_listed(self):
        done = holdfast()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        for text in ("Inspect:", "  doctor ", "Repair:", "  heal ", "Prepare a host:", "  setup ", "CPUs:", "  cpu "):
            self.assertIn(text, done.stderr)
        self.assertNotIn("mend", done.stderr)

    def test_formats_of_commands_that_print_data(self):
        with scratch_cgroup(V2) as group:
            for command in (["rules"], ["rules", f"cgroup:{group}"], ["cdi", "list"], ["cpu", "topology"], ["blame"], ["doctor", "--explain", "HF-101"]):
                with self.subTest(command):
                    tree = json.loads(holdfast(*command, "-o", "json").stdout)
                    yaml = holdfast(*command, "-o", "yaml")
                    first = next(iter(tree)) if isinstance(tree, dict) else "-"
                    self.assertIn(first, yaml.stdout.splitlines()[0])

    def test_a_narrow_terminal(self):
        wide = subprocess.run(["script", "-qec", f"stty cols 200; {HOLDFAST} cpu topology --from dgx-a100; {HOLDFAST} cdi list", "/dev/null"], capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(wide.returncode, 0, wide.stdout)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as scenario:
            pod, name = "a-pod-with-a-rather-long-name", "a-container-with-a-long-name"
            step = {"op": "allocate", "pod": pod, "container": name, "hint_numa": None, "pod_containers": [{"name": name, "type": "app", "cpus": 2}]}
            json.dump({"topology": "dgx-a100", "options": {}, "reserved": "0", "ops": [step]}, scenario)
            scenario.flush()
            narrow = subprocess.run(["script", "-qec", f"stty cols 40; {HOLDFAST} cpu simulate {scenario.name}", "/dev/null"], capture_output=True, text=True, check=False, timeout=60)
        lines = narrow.stdout.replace("\r", "").splitlines()
        self.assertLessEqual(max(len(line) for line in lines[1:]), 40, narrow.stdout)

    def test_colours_are_for_terminals_that_know_them(self):
        # A verdict is coloured on every host.
        command = f"{HOLDFAST} setup podman --config /nonexistent/containers.conf --undo --dry-run"
        for environment, is_coloured in (("TERM=xterm", True), ("TERM=dumb", False), ("-u TERM", False), ("TERM=xterm NO_COLOR=1", False)):
            with self.subTest(environment):
                done = subprocess.run(["script", "-qec", f"env -u NO_COLOR {environment} {command}", "/dev/null"], capture_output=True, text=True, check=False, timeout=60)
                self.assertIn("nothing to undo", done.stdout)
                self.assertEqual("\x1b[32m" in done.stdout, is_coloured, done.stdout)

    def test_completion_follows_the_commands(self):
        for words, expected in (
            (("do",), ["doctor"]),
            (("demo",), ["demo"]),
            (("doctor", "-o", ""), ["text", "json", "yaml"]),
            (("doctor", "--output", "j"), ["json"]),
            (("grant", "pid:1", "c 1:3 r", "--dry"), ["--dry-run"]),
            (("cpu", "rel"), ["release"]),
            (("rules", "diff", "--out"), ["--output"]),
            (("nonsense", ""), []),
            ((), []),
        ):
            with self.subTest(words):
                self.assertEqual([line.split("\t")[0] for line in self.ok("complete", *words).splitlines()], expected)

    def test_every_code_has_its_page(self):
        pages = pathlib.Path(__file__).parents[2] / "docs/FINDINGS.md"
        codes = [line.split()[1] for line in pages.read_text().splitlines() if line.startswith("## HF-")]
        self.assertGreater(len(codes), 45)
        self.assertEqual(len(codes), len(set(codes)))
        for code in codes:
            self.assertTrue(self.ok("doctor", "--explain", code).startswith(code + " "))

    def test_a_host_in_every_output_format(self):
        for command in ("ps", "doctor", "devices"):
            with self.subTest(command):
                done = holdfast(command, "-o", "json")
                self.assertIn(done.returncode, (0, 1), done.stderr)
                self.assertEqual(json.loads(done.stdout)["version"], 1)
                yaml = holdfast(command, "-o", "yaml")
                self.assertEqual(yaml.stdout.splitlines()[0], '"version": 1')
                self.assertNotIn("\x1b", holdfast(command).stdout, "colours are for terminals")

    def test_a_config_that_makes_no_sense_is_named(self):
        """In a mount namespace of its own: the machine's /etc stays as it is."""
        for text, names in (
            ("clases: []\n", "clases"),
            ("classes: [{name: x}]\n", "units"),
            ("classes: [{name: X, units: [/dev/x]}]\n", "name"),
            ("state_roots: [relative]\n", "relative"),
            ("guard: {rules: [{class: nvidea, mode: observe}]}\n", "no device class 'nvidea'; did you mean nvidia?"),
            ("guard: {rules: [{engine: dokcer, mode: observe}]}\n", "no engine 'dokcer'; did you mean docker?"),
            ("cpus: {options: [full-pcpu-only]}\n", "did you mean full-pcpus-only?"),
            ("{", "config"),
        ):
            with self.subTest(text), tempfile.TemporaryDirectory(prefix="hf-e2e-") as directory:
                write(pathlib.Path(directory) / "config.yaml", text)
                script = f"mkdir -p /etc/holdfast && mount --bind {directory} /etc/holdfast && exec {HOLDFAST} ps"
                made = not pathlib.Path("/etc/holdfast").exists()
                done = subprocess.run(["unshare", "-m", "sh", "-ec", script], capture_output=True, text=True, check=False, timeout=60)
                if made:
                    pathlib.Path("/etc/holdfast").rmdir()
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn("/etc/holdfast/config.yaml", done.stderr)
                self.assertIn(names, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_a_config_that_cannot_be_read_is_no_answer(self):
        with tempfile.TemporaryDirectory(prefix="hf-e2e-") as directory:
            (pathlib.Path(directory) / "config.yaml").mkdir()
            script = f"mkdir -p /etc/holdfast && mount --bind {directory} /etc/holdfast && exec {HOLDFAST} cdi generate --class fuse"
            made = not pathlib.Path("/etc/holdfast").exists()
            done = subprocess.run(["unshare", "-m", "sh", "-ec", script], capture_output=True, text=True, check=False, timeout=60)
            if made:
                pathlib.Path("/etc/holdfast").rmdir()
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)

    def test_an_answer_that_cannot_be_written_is_no_answer(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([HOLDFAST, "rules", "pid:1"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("standard output", done.stderr)

    def test_without_privileges_it_says_so(self):
        unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--"]
        with tempfile.TemporaryDirectory() as directory:
            copy = pathlib.Path(directory) / "holdfast"
            os.chmod(directory, 0o755)
            copy.write_bytes(pathlib.Path(holdfast("--version").args[0]).read_bytes())
            copy.chmod(0o755)
            done = subprocess.run([*unprivileged, copy, "rules"], capture_output=True, text=True, check=False, timeout=60)
            for command in (
                ["grant", "train", "c 195:0 rw"],
                ["heal", "--all"],
                ["ps"],
                ["cpu", "status"],
                ["rules", "train"],
                ["rules", "diff", "train", "pid:1"],
                ["blame", "train", "--journal", "/tmp"],
                ["setup", "node"],
                ["setup", "node", "--undo"],
                *(["setup", engine] for engine in ("docker", "containerd", "crio", "podman")),
            ):
                with self.subTest(command):
                    other = subprocess.run([*unprivileged, copy, *command], capture_output=True, text=True, check=False, timeout=60)
                    self.assertEqual((other.returncode, other.stdout), (2, ""), other.stderr)
                    self.assertTrue(other.stderr.endswith(": needs root (try sudo)\n"), other.stderr)
                    self.assertEqual(other.stderr.count("\n"), 1, other.stderr)
            plan = subprocess.run([*unprivileged, copy, "setup", "node", "--dry-run"], capture_output=True, text=True, check=False, timeout=60)
            self.assertNotIn("needs root", plan.stderr, "a plan changes nothing")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("needs root", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Manuals(unittest.TestCase):
    def test_each_synopsis_has_the_options_of_its_help(self):
        helps = dict(commands(HOLDFAST))
        found = synopses(read_manual("holdfast.1"), "holdfast")
        self.assertEqual(sorted(found), sorted(helps))
        for command, text in helps.items():
            with self.subTest(command):
                written = {*OPTION.findall(found[command]), *(["--output"] if "[-o " in found[command] else [])}
                for names in options_of(text):
                    self.assertTrue(written & set(names), f"{names} is in the help only")
                known = {name for names in options_of(text) for name in names}
                self.assertLessEqual(written, known, "no such option")

    @unittest.skipUnless(HOLDFASTD and KUBE, "needs holdfastd and holdfast-kube as arguments")
    def test_each_page_describes_the_options_of_its_program(self):
        for program, page in ((HOLDFAST, "holdfast.1"), (HOLDFASTD, "holdfastd.8"), (KUBE, "holdfast-kube.8")):
            with self.subTest(page):
                known = {name for _, text in commands(program) for names in options_of(text) for name in names}
                described = set(OPTION.findall(section(read_manual(page), "OPTIONS")))
                self.assertEqual(described - {"--help", "--version"}, known)


class Files(Case):
    DENY_ALL = "b700000000000000\n9500000000000000\n"

    def test_hex_and_broken_files(self):
        with tempfile.NamedTemporaryFile("w", suffix=".hex") as file:
            file.write(self.DENY_ALL)
            file.flush()
            target = f"file:{file.name}"
            self.assertEqual(holdfast_json("rules", target)["effective"], {"exact": True, "why": None, "rules": []})
            done = holdfast("rules", target, "--ask", "c:1:3:r")
            self.assertEqual((done.returncode, done.stdout), (1, f"deny {target}\n"))
        for broken, names in [("b7\n", "line 1"), ("b700000000000000\n", "truncated"), ("", "no instructions"), ('{"insns":3}', "insns")]:
            with tempfile.NamedTemporaryFile("w") as file, self.subTest(broken=broken):
                file.write(broken)
                file.flush()
                self.refused(2, names, "rules", f"file:{file.name}")

    def test_a_program_that_cannot_be_read_is_exit_2_and_not_exact(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("6110080000000000\n5700000001000000\n9500000000000000\n")  # odd minors
            file.flush()
            done = holdfast("rules", f"file:{file.name}", "-o", "json")
            self.assertEqual(done.returncode, 2)
            self.assertIn('"exact": false', done.stdout)
            asked = holdfast("rules", f"file:{file.name}", "--ask", "c:1:3:r", "--ask", "c:1:4:r")
            self.assertEqual(asked.stdout.splitlines()[0], "allow")
            self.assertTrue(asked.stdout.splitlines()[1].startswith("deny "))


class Cgroups(Case):
    def check_change(self, cgroup: pathlib.Path):
        target = f"cgroup:{cgroup}"
        with node(195, 0) as gpu:
            self.assertEqual(errno_of_open(cgroup, gpu), "EPERM")
            plan = holdfast("grant", target, "c 195:0 rw", "--dry-run")
            self.assertEqual(plan.returncode, 1, "something would be changed")
            self.assertIn("nothing was changed", plan.stdout)
            self.assertEqual(errno_of_open(cgroup, gpu), "EPERM")
            self.assertIn("granted c 195:0 rw", self.ok("grant", target, "c 195:0 rw"))
            self.assertEqual(errno_of_open(cgroup, gpu), "ENXIO")
            self.assertIn("already", self.ok("grant", target, "c", "195:0", "rw"))
            self.ok("grant", target, "c 195:0 rw", "--dry-run")
            self.ok("rules", target, "--ask", "c:195:0:rw")
            self.ok("revoke", target, "c 195:0 w")
            self.assertEqual(errno_of_open(cgroup, gpu), "EPERM")
            self.assertEqual(errno_of_open(cgroup, gpu, os.O_RDONLY), "ENXIO")
        report = holdfast_json("rules", target)
        self.assertTrue(report["effective"]["exact"])
        self.assertIn({"type": "c", "major": 195, "minor": 0, "access": "r"}, report["effective"]["rules"])

    def test_grant_and_revoke_on_v1(self):
        with scratch_cgroup(V1) as cgroup:
            write(cgroup / "devices.deny", "a")
            write(cgroup / "devices.allow", "c 1:3 rwm")
            self.check_change(cgroup)
            self.assertEqual((cgroup / "devices.list").read_text(), "c 1:3 rwm\nc 195:0 r\n")

    def test_grant_and_revoke_on_v2(self):
        with scratch_cgroup(V2) as cgroup:
            self.ok("revoke", f"cgroup:{cgroup}", "c 195:* rwm")
            self.check_change(cgroup)

    def test_a_gate_above_is_named_and_exit_1(self):
        for hierarchy in (V1, V2):
            with self.subTest(hierarchy=hierarchy), scratch_cgroup(hierarchy) as parent:
                if hierarchy == V1:
                    write(parent / "devices.deny", "a")
                else:
                    self.ok("revoke", f"cgroup:{parent}", "c 195:* rwm")
                with scratch_cgroup(hierarchy, parent) as child:
                    self.refused(1, str(parent), "grant", f"cgroup:{child}", "c 195:0 rw")

    def test_questions_from_standard_input_get_one_line_each(self):
        with scratch_cgroup(V2) as cgroup:
            self.ok("revoke", f"cgroup:{cgroup}", "c 195:* w")
            done = holdfast("rules", f"cgroup:{cgroup}", "--ask", "-", stdin="c:195:0:r\nc:195:0:rw\nfrog\nb:8:0:m\n")
            lines = done.stdout.splitlines()
            self.assertEqual([line.split()[0] for line in lines], ["allow", "deny", "unknown", "allow"])
            self.assertIn(str(cgroup), lines[1])
            self.assertEqual(done.returncode, 2)

    def test_hidden_denies_of_v1_are_answered_by_the_probe(self):
        with scratch_cgroup(V1) as cgroup:
            write(cgroup / "devices.deny", "c 195:0 w")
            done = holdfast("rules", f"cgroup:{cgroup}", "--ask", "c:195:0:rw", "--ask", "c:195:0:r")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout.splitlines(), [f"deny v1:{cgroup} (source: probe)", "allow"])
            report = holdfast_json("rules", f"cgroup:{cgroup}")
            self.assertEqual((report["source"], report["effective"]["exact"]), ("probe", False))

    def test_a_grant_that_does_not_hold_is_not_called_proven(self):
        with scratch_cgroup(V1) as cgroup:
            write(cgroup / "devices.deny", "c 195:* r")  # hidden, and no write for 195:0 undoes it
            done = holdfast("grant", f"cgroup:{cgroup}", "c 195:0 r")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn("does not hold", done.stdout)
            write(cgroup / "devices.allow", "c 195:* r")
            self.assertIn("read back and proven", self.ok("grant", f"cgroup:{cgroup}", "c 195:0 r"))
            self.assertIn("read back and proven", self.ok("revoke", f"cgroup:{cgroup}", "c 195:* rw"))
            unproven = holdfast("grant", f"cgroup:{cgroup}", "c *:0 rw")
            self.assertEqual(unproven.returncode, 2, unproven.stdout)
            self.assertIn("NOT PROVEN", unproven.stdout)

    def test_pure_v2_in_a_mount_namespace(self):
        with scratch_cgroup(V2) as cgroup:
            script = (
                "mount -t cgroup2 none /sys/fs/cgroup; "
                f"{HOLDFAST} revoke cgroup:/sys/fs/cgroup/{cgroup.name} 'c 195:* rwm' >/dev/null; "
                f"{HOLDFAST} rules; {HOLDFAST} rules cgroup:/{cgroup.name} --ask c:195:0:r"
            )
            done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn("(v2)", done.stdout)
            self.assertIn(f"deny v2:/sys/fs/cgroup/{cgroup.name} program:", done.stdout)

    def test_control_characters_in_names_do_not_reach_the_terminal(self):
        with scratch_cgroup(V1) as cgroup:
            inner = cgroup / "a\x1b[31mb"
            inner.mkdir()
            write(inner / "devices.deny", "a")
            self.assertNotIn("\x1b", self.ok("rules"))
            inner.rmdir()

    def test_diff_shows_both_directions(self):
        with scratch_cgroup(V1) as left, scratch_cgroup(V1) as right:
            for cgroup, rule in ((left, "c 195:0 rw"), (right, "c 195:1 rw")):
                write(cgroup / "devices.deny", "a")
                write(cgroup / "devices.allow", rule)
            done = holdfast("rules", "diff", f"cgroup:{left}", f"cgroup:{right}", "-o", "json")
            self.assertEqual(done.returncode, 1)
            self.assertIn('"only_left"', done.stdout)
            text = holdfast("rules", "diff", f"cgroup:{left}", f"cgroup:{right}").stdout
            self.assertIn("- c 195:0 rw", text)
            self.assertIn("+ c 195:1 rw", text)
            self.ok("rules", "diff", f"cgroup:{left}", f"cgroup:{left}")

    def test_programs_above_what_is_mounted_still_count(self):
        with scratch_cgroup(V2) as parent, scratch_cgroup(V2, parent) as inner, scratch_cgroup(V2, inner) as leaf:
            self.ok("revoke", f"cgroup:{parent}", "c 195:* rwm")
            # As in a container: its own cgroup is the root of what it sees.
            script = (
                f"echo 0 > {inner}/cgroup.procs; exec unshare -mC sh -ec '"
                "umount /sys/fs/cgroup/unified; mount -t cgroup2 none /sys/fs/cgroup/unified; "
                f"{HOLDFAST} rules cgroup:/sys/fs/cgroup/unified/{leaf.name} --ask c:195:0:r'"
            )
            done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn("deny above what is mounted here program:", done.stdout)

    def test_the_host_and_a_process(self):
        with scratch_cgroup(V1) as v1, scratch_cgroup(V2) as v2:
            write(v1 / "devices.deny", "a")
            self.ok("revoke", f"cgroup:{v2}", "c 195:* rwm")
            places = [gate["cgroup"] for gate in holdfast_json("rules")["gates"]]
            self.assertIn(str(v1), places)
            self.assertIn(str(v2), places)
            with subprocess.Popen(["sleep", "60"]) as process:
                try:
                    write(v1 / "cgroup.procs", str(process.pid))
                    write(v2 / "cgroup.procs", str(process.pid))
                    report = holdfast_json("rules", f"pid:{process.pid}")
                    self.assertEqual({gate["hierarchy"] for gate in report["gates"]}, {"v1", "v2"})
                    self.assertEqual(report["effective"], {"exact": True, "why": None, "rules": []})
                    program = next(gate["program"]["id"] for gate in report["gates"] if gate["program"])
                    self.assertIn("b *:* rwm", self.ok("rules", f"program:{program}"))
                finally:
                    process.kill()


if __name__ == "__main__":
    run_suite(verbosity=1)
