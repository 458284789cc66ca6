#!/usr/bin/env python3
"""Real containers of every engine, on cgroup v1 and v2, broken in every way that can be had here: what doctor says, and that its cures cure."""

import contextlib
import ctypes
import json
import os
import pathlib
import signal
import stat
import subprocess
import tempfile
import unittest

import engines
from engines import FUSE, Unavailable
from guarded import other_guards
from ledger import LEDGER, ledger_entry
from support import HOLDFAST, V1, Case, holdfast, holdfast_json, run_suite, scratch_cgroup

CACHE = pathlib.Path(HOLDFAST).parent / "packages"
MS_NODEV, MS_REMOUNT, MS_BIND = 4, 32, 4096
CLONE_NEWNS = 0x20000


def remount(pid: int, point: str, flags: int) -> None:
    """In the container's mount namespace, by a child."""
    libc = ctypes.CDLL(None, use_errno=True)
    namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
    child = os.fork()
    if child == 0:
        failed = libc.setns(namespace, CLONE_NEWNS) or libc.mount(None, point.encode(), None, MS_REMOUNT | MS_BIND | flags, None)
        os._exit(1 if failed else 0)
    os.close(namespace)
    if os.waitpid(child, 0)[1] != 0:
        raise OSError(f"remount {point}")


def command_line(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


class Engines(Case):
    def start(self, make, *arguments, **options) -> engines.Container:
        try:
            return self.enterContext(make(*arguments, **options))
        except Unavailable as error:
            self.skipTest(str(error))

    def findings(self, container: engines.Container) -> list[dict]:
        """Those about /dev/fuse: the stand-in GPU has no driver, which is a finding of its own."""
        report = holdfast_json("doctor", container.id)
        return [finding for finding in report["findings"] if FUSE in finding["verdict"]]

    def codes(self, container: engines.Container) -> list[str]:
        return [finding["code"] for finding in self.findings(container)]

    def trouble(self, container: engines.Container) -> str:
        return holdfast_json("explain", container.id, FUSE)["nodes"][0]["trouble"]

    def cure(self, container: engines.Container) -> None:
        """Runs the commands that doctor prints."""
        for finding in self.findings(container):
            for command in finding["cure"]:
                self.assertRegex(command, r"^(holdfast|mknod|rm|chmod|systemctl) ", finding)
                script = command.replace("holdfast ", f"{HOLDFAST} ", 1) if command.startswith("holdfast ") else command
                done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)
                if command.startswith("holdfast heal "):
                    self.check_healed(done)
                else:
                    self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}{done.stderr}")
        self.assertEqual(self.codes(container), [])
        self.assertEqual(container.opens(FUSE), "ok")

    def node(self, container: engines.Container) -> str:
        return f"/proc/{container.pid}/root{FUSE}"

    def check_identity(self, container: engines.Container, engine: str) -> dict:
        report = holdfast_json("ps")
        mine = next(entry for entry in report["containers"] if entry["id"] == container.id)
        self.assertEqual(mine["pid"], container.pid)
        self.assertEqual(mine["engine"], engine)
        self.assertIn(FUSE, [node["path"] for node in mine["owed"]])
        self.assertIn("/dev/nvidia-uvm", [node["path"] for node in mine["owed"]], "a GPU is owed as a whole set")
        self.assertIn("1.", mine["runtime_version"])
        return mine

    def break_and_cure(self, container: engines.Container) -> None:
        self.assertEqual(self.codes(container), [])
        self.assertEqual(self.trouble(container), "ok")
        self.refused(2, f"did you mean {FUSE}?", "explain", container.id, FUSE + "e")
        with self.subTest("rules rewritten"):
            self.ok("revoke", container.id, "c 10:229 rw")
            self.assertEqual(container.opens(FUSE), "EPERM")
            self.assertEqual(self.codes(container), ["HF-101"])
            self.cure(container)
        with self.subTest("node removed"):
            os.unlink(self.node(container))
            self.assertEqual(self.codes(container), ["HF-104"])
            self.cure(container)
        with self.subTest("wrong major"):
            os.unlink(self.node(container))
            os.mknod(self.node(container), 0o666 | stat.S_IFCHR, os.makedev(1, 7))
            self.assertEqual(self.codes(container), ["HF-106"])
            self.assertIn("that is mem", " ".join(self.findings(container)[0]["evidence"]))
            self.cure(container)
        with self.subTest("a wrong number that the rules refuse as well"):
            os.unlink(self.node(container))
            os.mknod(self.node(container), 0o666 | stat.S_IFCHR, os.makedev(10, 232))
            self.assertEqual(self.codes(container), ["HF-106"])
            self.cure(container)
        with self.subTest("a dangling symlink"):
            os.unlink(self.node(container))
            os.symlink("/nowhere", self.node(container))
            self.assertEqual(self.codes(container), ["HF-115"])
            self.cure(container)
        with self.subTest("a file in its place"):
            os.unlink(self.node(container))
            pathlib.Path(self.node(container)).write_text("no device")
            self.assertEqual(self.codes(container), ["HF-115"])
            self.cure(container)

    def break_mount(self, container: engines.Container, point: str) -> None:
        with self.subTest("nodev"):
            remount(container.pid, point, MS_NODEV)
            self.assertEqual(self.codes(container), ["HF-110"])
            for more in ([], ["--dry-run"]):
                healed = holdfast("heal", container.id, *more)
                self.assertEqual(healed.returncode, 1, "its rules are fine, and it cannot open the device: " + healed.stdout)
                self.assertRegex(healed.stdout, f"still lack{'' if more else 's'} .*{FUSE}")
                self.assertIn(f"  {FUSE}: the node lies on a mount with nodev", healed.stdout)
            remount(container.pid, point, 0)
            self.assertEqual(self.codes(container), [])
            self.healed(container.id)

    def break_parent(self, container: engines.Container) -> None:
        with self.subTest("an ancestor denies"):
            parent = container.cgroups()[0].parent
            self.ok("revoke", f"cgroup:{parent}", "c 10:229 rw")
            self.assertEqual(container.opens(FUSE), "EPERM")
            self.assertEqual(self.codes(container), ["HF-103"])
            self.assertIn(str(parent), json.dumps(self.findings(container)[0]["evidence"]))
            self.cure(container)

    def check_engine(self, engine: str, make, *arguments, **options) -> None:
        container = self.start(make, *arguments, **options)
        self.check_identity(container, engine)
        self.break_and_cure(container)
        self.break_mount(container, "/dev")
        if container.version == "v2":
            self.break_parent(container)

    def check_names(self, container: engines.Container) -> None:
        """A name and the beginning of an id are targets everywhere."""
        for target in (container.name, container.id[:-4]):
            self.ok("rules", target, "--ask", "c:10:229:rw")
            self.assertIn(container.name, holdfast("explain", target).stdout)
        self.refused(2, "no container 'hf-no-such-container'; running: ", "explain", "hf-no-such-container")

    def test_docker_v1(self):
        self.check_engine("docker", engines.docker, "v1")

    def test_docker_v2(self):
        self.check_engine("docker", engines.docker, "v2")

    def test_an_engine_that_hangs_costs_nothing(self):
        container = self.start(engines.docker, "v1")
        directory = str(container.record.parents[3])
        daemons = [pid for pid in engines.processes() if directory in command_line(pid) and "shim" not in command_line(pid)]
        self.assertTrue(daemons)
        for pid in daemons:
            os.kill(pid, signal.SIGSTOP)
        try:
            mine = self.check_identity(container, "docker")
            self.assertEqual(mine["name"], container.name)
        finally:
            for pid in daemons:
                os.kill(pid, signal.SIGCONT)

    def test_containerd_v1(self):
        self.check_engine("containerd", engines.containerd, "v1")

    def test_containerd_v2_in_another_namespace(self):
        self.check_engine("containerd", engines.containerd, "v2", namespace="other")

    def test_podman_v1(self):
        self.check_engine("podman", engines.podman, "v1")

    def test_podman_v2(self):
        self.check_engine("podman", engines.podman, "v2")

    def test_a_pod_v1(self):
        self.check_engine("containerd", engines.kubernetes, "v1")

    def test_a_pod_v2_with_crun(self):
        container = self.start(engines.kubernetes, "v2", runtime="crun")
        mine = self.check_identity(container, "containerd")
        self.assertEqual(mine["pod"]["name"], container.name)
        self.assertEqual(mine["pod"]["container"], "main")
        self.assertEqual(mine["runtime"], "crun")
        self.ok("rules", f"{container.name}/main", "--ask", "c:10:229:rw")
        self.break_and_cure(container)

    def test_runc_and_crun_by_themselves(self):
        for runtime in ("runc", "crun"):
            for version in ("v1", "v2"):
                with self.subTest(f"{runtime} {version}"):
                    container = self.start(engines.oci, version, runtime)
                    self.check_identity(container, runtime)
                    self.check_names(container)
                    self.break_and_cure(container)
                    # It has no CAP_DAC_OVERRIDE: mode 000 keeps even root out.
                    os.chmod(self.node(container), 0)
                    self.assertEqual(self.codes(container), ["HF-108"])
                    self.cure(container)

    def test_an_ancestor_denies_on_v1(self):
        with scratch_cgroup(V1) as parent:
            (parent / "devices.deny").write_text("a")
            for rule in ("c *:* m", "b *:* m", "c 1:* rwm", "c 5:* rwm", "c 136:* rwm", "c 195:* rwm", "c 10:* rwm"):
                (parent / "devices.allow").write_text(rule)
            container = self.start(engines.oci, "v1", "runc", parent=parent.name)
            self.assertEqual(self.codes(container), [])
            (parent / "devices.deny").write_text("c 10:* rw")
            self.assertEqual(container.opens(FUSE), "EPERM")
            self.assertEqual(self.codes(container), ["HF-103"])
            self.cure(container)

    def test_two_names_that_begin_alike_are_listed(self):
        first = self.start(engines.oci, "v1", "runc")
        second = self.start(engines.oci, "v1", "runc")
        done = holdfast("explain", "hf-e2e-runc-")
        self.assertEqual(done.returncode, 2)
        self.assertIn(first.name, done.stderr)
        self.assertIn(second.name, done.stderr)

    def given(self, container: engines.Container):
        """The ledger says that the container was given a device its bundle does not have."""
        return ledger_entry(container.id, {FUSE: (10, 229)}, bundle=str(container.bundle))

    def test_a_node_in_its_dev_gives_a_container_nothing(self):
        """Whichever process created it: a node is no evidence, whatever the rules let through."""
        container = self.start(engines.oci, "v1", "runc", gpu=False)
        self.assertTrue(pathlib.Path(self.node(container)).is_char_device())
        container.inject_v1()
        mine = next(entry for entry in holdfast_json("ps")["containers"] if entry["id"] == container.id)
        self.assertEqual(mine["owed"], [])
        self.assertEqual(mine["state"], "not owed")

    def test_a_ledger_that_others_can_write_gives_nothing(self):
        container = self.start(engines.oci, "v1", "runc", gpu=False)
        with self.given(container):
            self.assertEqual(self.codes(container), ["HF-101"])
            (LEDGER / f"{container.id}.json").chmod(0o666)
            self.assertEqual(self.codes(container), [])

    def test_heal_follows_no_symlink_out_of_the_container(self):
        container = self.start(engines.oci, "v1", "runc")
        root = pathlib.Path(f"/proc/{container.pid}/root")
        with tempfile.TemporaryDirectory(prefix="hf-e2e-") as outside:
            os.rename(root / "dev", root / "dev.old")
            os.symlink(outside, root / "dev")
            done = holdfast("heal", container.id)
            self.assertEqual(os.listdir(outside), [], done.stdout + done.stderr)
            os.unlink(root / "dev")
            os.rename(root / "dev.old", root / "dev")
        self.assertNotIn(FUSE, self.healed(container.id))

    def test_heal_recreates_a_node_and_a_dry_run_only_says_so(self):
        container = self.start(engines.oci, "v1", "runc")
        os.unlink(self.node(container))
        planned = holdfast("heal", container.id, "--dry-run")
        self.assertEqual(planned.returncode, 1, planned.stdout + planned.stderr)
        self.assertNotRegex(planned.stdout, f"lack .*{FUSE}")
        self.assertIn(f"would: recreate {FUSE} as c 10:229", planned.stdout)
        self.assertFalse(os.path.lexists(self.node(container)))
        self.assertIn(f"did: created {FUSE} again as c 10:229", self.healed(container.id))
        self.assertEqual(container.opens(FUSE), "ok")

    def test_doctor_and_ps_both_know_what_the_guard_recorded(self):
        """The guard gave it the device; libraries it has none. Only the journal says so, and every command reads it."""
        container = self.start(engines.oci, "v1", "runc", gpu=False)
        container.inject_v1()
        directory = self.enterContext(tempfile.TemporaryDirectory(prefix="hf-e2e-"))
        config, journal = pathlib.Path(directory, "config.yaml"), pathlib.Path(directory, "blame.jsonl")
        config.write_text(f"journal:\n  directory: {directory}\n")
        record = {"version": 1, "number": 1, "at": "2026-11-15T05:14:08.123Z", "id": container.id, "kind": "found changed", "hierarchy": "v1"}
        journal.write_text(json.dumps(record | {"cgroup": "/x", "writer": {"pid": 0}, "devices": [FUSE], "action": "completed"}) + "\n")

        def asked(*arguments: str) -> dict:
            script = f"mkdir -p /etc/holdfast && mount --bind {directory} /etc/holdfast && exec {HOLDFAST} {' '.join(arguments)} -o json"
            return json.loads(subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=60, check=False).stdout)

        self.addCleanup(lambda made: made and os.rmdir("/etc/holdfast"), not os.path.exists("/etc/holdfast"))
        with ledger_entry(container.id, engines.GPU_NODES, bundle=str(container.bundle)):
            codes = [finding["code"] for finding in asked("doctor", container.id)["findings"]]
            self.assertIn("HF-105", codes)
            line = next(line for line in asked("ps")["containers"] if line["id"] == container.id)
            self.assertIn("HF-105", line["findings"])
            self.assertEqual(line["state"], asked("explain", container.id)["container"]["state"])
            journal.write_text("")
            self.assertNotIn("HF-105", [finding["code"] for finding in asked("doctor", container.id)["findings"]])

    def test_mend_still_works_and_points_to_heal(self):
        container = self.start(engines.oci, "v1", "runc")
        os.unlink(self.node(container))
        done = holdfast("mend", container.id, FUSE)
        self.check_healed(done)
        warning = "mend is part of heal now and goes away with the next release; use: holdfast heal"
        self.assertEqual(done.stderr, f"holdfast: {warning} {container.id}\n")
        self.assertIn(f"did: created {FUSE} again as c 10:229", done.stdout)
        self.assertEqual(container.opens(FUSE), "ok")

    def test_an_old_runc_loses_at_its_update_what_it_was_given_and_doctor_knew(self):
        runtime = self.start(lambda: contextlib.nullcontext(engines.old_runc(CACHE)))
        container = self.start(engines.oci, "v1", runtime, gpu=False)
        container.inject_v1()
        self.assertEqual(container.opens(FUSE), "ok")
        self.assertEqual(self.codes(container), [], "nothing says that it is owed")
        with self.given(container):
            # The state directory does not name the binary; an engine's monitor process would.
            container.update_cpus()
            self.assertEqual(container.opens(FUSE), "EPERM")
            self.assertEqual(self.codes(container), ["HF-101"])
            self.cure(container)

    def test_an_old_runc_below_docker_is_a_risk(self):
        runtime = self.start(lambda: contextlib.nullcontext(engines.old_runc(CACHE)))
        container = self.start(engines.docker, "v1", runtime=runtime, gpu=False)
        container.inject_v1()
        with self.given(container):
            self.assertEqual(self.codes(container), ["HF-203"])
            self.assertIn("1.0.0~rc93", json.dumps(self.findings(container)))
            guards = other_guards()
            state = holdfast_json("explain", container.id)["container"]["state"]
            if not guards and not other_guards():  # one of another suite would keep the device
                self.assertEqual(state, "at risk")
            container.update_cpus()
            self.assertEqual(container.opens(FUSE), "EPERM")
            self.assertEqual(self.codes(container), ["HF-101"])

    def test_crun_below_containerd_is_a_risk_in_a_pod(self):
        container = self.start(engines.kubernetes, "v1", runtime="crun", gpu=False)
        container.inject_v1()
        with self.given(container):
            self.assertEqual(self.codes(container), ["HF-203"])
            container.update_cpus()
            self.assertEqual(container.opens(FUSE), "EPERM")
            self.assertEqual(self.codes(container), ["HF-101"])
            self.ok("grant", container.id, "c 10:229 rw")
            self.assertEqual(self.codes(container), ["HF-203"], "granted again, and at risk again")


if __name__ == "__main__":
    run_suite(verbosity=1)
