#!/usr/bin/env python3
"""holdfast-runtime with real runtimes and engines, on cgroup v1 and v2: containers have their GPU, keep it, and others are left alone.

Short by default; HOLDFAST_RUNTIME=long makes it 1,000 containers with a GPU.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import secrets
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

from support import HOLDFAST, Case, run_suite, which  # removes its argument from the command line first
from guarded import HOLDFASTD, allows, difference, eventually, opening, other_guards, rule

SHIM = str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 and "/" in sys.argv[1] else "holdfast-runtime"

import boxes
import engines
import gpu_stage
from boxes import Box
from engines import Unavailable
from systemd_host import make_bundle, systemd_host, why_no_systemd
from gpu_stage import BIN, CONFIG, DRIVER, LEDGER, LIBRARIES, NODES, RUNTIME, SECOND_UUID, UUID, VERSION, Stage

IS_LONG = os.environ.get("HOLDFAST_RUNTIME") == "long"
CACHE = pathlib.Path(HOLDFAST).parent / "packages"
PROGRAMS = {"holdfast": str(HOLDFAST), "holdfastd": HOLDFASTD, "holdfast-runtime": SHIM}
GPU_ALONE = {path: NODES[path] for path in ("/dev/nvidia0", "/dev/nvidiactl")}
STAGES: dict[str, Stage] = {}
FIGURES: list[str] = []


def tearDownModule():
    for made in STAGES.values():
        made.close()
    STAGES.clear()
    for line in FIGURES:
        print(line, file=sys.stderr)


def stage_of(version: str) -> Stage:
    """One for all tests: it is their boxes that come and go."""
    if version not in STAGES:
        STAGES[version] = Stage(version, PROGRAMS)
    return STAGES[version]


def config(*lines: str) -> str:
    return CONFIG + "".join(f"  {line}\n" for line in lines)


class Staged(Case):
    def setUp(self):
        super().setUp()
        for name in ("runc", "busybox", "cc", "nsenter", "ldconfig"):
            if not which(name):
                self.skipTest(f"needs {name}")
        if others := other_guards(but_tests=True):
            self.skipTest(f"another guard is at work on this machine: process {others[0]}")

    def stage(self, version: str = "v1") -> Stage:
        try:
            return stage_of(version)
        except Unavailable as error:
            self.skipTest(str(error))

    def box(self, version: str = "v1", name: str = "") -> Box:
        return self.enterContext(boxes.box(self.stage(version), name))

    def gpu(self, version: str = "v1", visible: str = "0") -> Box:
        return self.box(version).ask(visible)

    def config(self, stage: Stage, *lines: str) -> None:
        self.enterContext(stage.config(config(*lines)))

    def need_crun(self, version: str) -> None:
        """It may not start on a machine for reasons of its own."""
        if not which("crun"):
            self.skipTest("needs crun")
        plain = self.box(version).write()
        plain.runtime = which("crun")
        done = plain.create()
        if done.returncode != 0:
            self.skipTest(f"crun itself cannot start here: {done.stderr.strip()}")

    def refused(self, done: subprocess.CompletedProcess, *texts: str) -> str:
        """One line of ours that has these texts."""
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("holdfast-runtime: "), done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr.removeprefix("holdfast-runtime: ").rstrip("\n")

    def check_refused(self, box: Box, *texts: str, place=None) -> None:
        """On standard error and in the log in both formats; no container, no entry, and the spec as it was."""
        box.place = place or box.stage
        before = (box.file.read_bytes(), box.file.stat().st_mtime_ns, box.file.stat().st_ino)
        said = self.refused(box.create(), *texts)
        for form in ("json", "text"):
            log = box.directory / f"log.{form}"
            done = box.call("--log", str(log), f"--log-format={form}", "create", "-b", str(box.directory), box.name)
            self.assertEqual(self.refused(done, *texts), said)
            written = log.read_text()
            self.assertEqual(written.count("\n"), 1, written)
            if form == "json":
                line = json.loads(written)
                self.assertEqual((line["level"], line["msg"]), ("error", f"holdfast-runtime: {said}"))
                self.assertIn("time", line)
            else:
                self.assertIn("level=error", written)
                self.assertIn(texts[0], written)
            log.unlink()
        self.assertFalse(box.exists())
        self.assertFalse(box.entry().exists(), "an entry in the ledger")
        self.assertEqual((box.file.read_bytes(), box.file.stat().st_mtime_ns, box.file.stat().st_ino), before)
        self.assertEqual(sorted(os.listdir(box.directory)), ["config.json", "rootfs"], "leftovers")
        self.assertFalse(any((mount / box.cgroup.lstrip("/")).exists() for mount in engines.CGROUPS.iterdir()))

    def check_opens(self, box: Box, answer: str = "ENXIO", nodes=NODES) -> None:
        self.assertEqual({path: box.opens(path) for path in nodes}, dict.fromkeys(nodes, answer))


# ---- runc and crun by hand ------------------------------------------------------------------------------------------


class Delivered(Staged):
    """What a container has that asked for a GPU."""

    def check_files(self, box: Box, has_hook: bool = False) -> None:
        for path, (major, minor) in NODES.items():
            status = os.lstat(box.inside(path))
            self.assertTrue(stat.S_ISCHR(status.st_mode), path)
            self.assertEqual((os.major(status.st_rdev), os.minor(status.st_rdev)), (major, minor), path)
            self.assertEqual(status.st_mode & 0o777, 0o666, path)
        directory = box.inside(LIBRARIES)
        for name in ("libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler"):
            library = f"{name}.so.{VERSION}"
            self.assertEqual((directory / library).read_bytes(), box.stage.path(f"{DRIVER}{LIBRARIES}/{library}").read_bytes())
            self.assertEqual(os.readlink(directory / f"{name}.so.1"), library)
            with self.assertRaises(OSError, msg="a container must not change the driver"):
                (directory / library).open("r+b")
        self.assertEqual(os.readlink(directory / "libcuda.so"), "libcuda.so.1")
        self.assertFalse((directory / f"libnvidia-encode.so.{VERSION}").exists(), "video was not requested")
        self.assertTrue(os.access(box.inside("/usr/bin/nvidia-smi"), os.X_OK))
        if has_hook:
            cache = subprocess.run(["ldconfig", "-p", "-C", box.inside("/etc/ld.so.cache")], capture_output=True, text=True, check=True)
            self.assertRegex(cache.stdout, rf"libcuda\.so\.1 .*=> {LIBRARIES}/libcuda\.so\.1")

    def check_environment(self, box: Box) -> None:
        variables = pathlib.Path(f"/proc/{box.pid}/environ").read_text().split("\0")
        self.assertEqual([variable for variable in variables if variable.startswith("NVIDIA_VISIBLE")], ["NVIDIA_VISIBLE_DEVICES=void"])

    def check_rules(self, box: Box, plain: list[dict], nodes=NODES) -> None:
        """What it would have without a GPU, and just those nodes."""
        given = [rule(f"c {major}:{minor} rw") for major, minor in nodes.values()]
        self.assertEqual(difference(box.rules(), plain + given), [])

    def plain_rules(self, version: str, runtime: str) -> list[dict]:
        box = self.box(version).write()
        box.runtime = which(runtime)
        rules = box.start().rules()
        box.delete()
        return rules

    def check_entry(self, box: Box) -> None:
        self.assertEqual(stat.S_IMODE(box.entry().stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(box.entry().parent.stat().st_mode), 0o700)
        entry = json.loads(box.entry().read_text())
        self.assertEqual((entry["container"], entry["bundle"]), (box.name, str(box.directory)))
        given = {node["path"]: (node["major"], node["minor"]) for node in entry["nodes"]}
        self.assertEqual(given, NODES)

    def check_life(self, version: str, runtime: str, visible: str) -> None:
        if runtime == "crun":
            self.need_crun(version)
        plain = self.plain_rules(version, runtime)
        box = self.gpu(version, visible)
        self.config(box.stage, f"programs: [{runtime}]")
        self.assertEqual(box.create().returncode, 0)
        self.assertEqual(box.state()["status"], "created")
        self.check_entry(box)
        box.ok("start", box.name)
        self.assertEqual(box.state()["status"], "running")
        self.check_files(box)
        self.check_environment(box)
        self.check_rules(box, plain)
        self.check_opens(box)
        box.ok("kill", box.name, "KILL")
        self.assertTrue(eventually(lambda: box.state()["status"] == "stopped"))
        self.assertTrue(box.entry().exists(), "until it is deleted")
        box.ok("delete", box.name)
        self.assertFalse(box.exists())
        self.assertFalse(box.entry().exists())
        self.assertEqual(sorted(os.listdir(box.directory)), ["config.json", "rootfs"])

    def test_runc_v1(self):
        self.check_life("v1", "runc", "0")

    def test_ways_to_name_one(self):
        for visible in (UUID, "0,0", "0,", " 0 , 0", UUID.lower()):
            with self.subTest(visible):
                box = self.gpu("v1", visible).start()
                self.check_opens(box)
                self.assertEqual(box.opens("/dev/nvidia1"), "ENOENT")
                box.delete()

    def test_runc_v2(self):
        self.check_life("v2", "runc", "0")

    def test_crun_v1(self):
        self.check_life("v1", "crun", UUID)

    def test_crun_v2(self):
        self.check_life("v2", "crun", "0")

    def test_all_are_all(self):
        for visible in ("all", "0,all", "0,1", f"{SECOND_UUID},0"):
            with self.subTest(visible):
                box = self.gpu("v1", visible).start()
                self.check_opens(box, nodes=NODES | gpu_stage.SECOND_NODE)
                box.delete()

    def test_of_two_variables_the_last_counts(self):
        box = self.gpu("v1", "all").ask("0").start()
        self.check_opens(box)
        self.assertEqual(box.opens("/dev/nvidia1"), "ENOENT")

    def test_none_void_and_nothing_are_no_gpu(self):
        for visible in ("void", "", "none"):
            with self.subTest(visible):
                box = self.gpu("v1", visible).start()
                self.assertEqual(box.opens("/dev/nvidia0"), "ENOENT")
                box.delete()

    def test_the_driver_is_not_to_change_nodes(self):
        """NVIDIA's libraries would, where the driver's parameters say so."""
        for runtime in ("runc", "crun"):
            with self.subTest(runtime):
                box = self.box("v1")
                self.config(box.stage, f"programs: [{runtime}]")
                box.spec["mounts"][0] = {"destination": "/proc", "type": "bind", "source": "/proc", "options": ["rbind"]}
                box.spec["linux"]["namespaces"] = [{"type": "mount"}]
                box.spec["process"]["capabilities"] = {kind: ["CAP_MKNOD"] for kind in ("bounding", "effective", "permitted")}
                box.ask("0").start()
                self.assertEqual(box.edited()["hooks"]["createContainer"][0]["args"][3:], ["--keep-device-files"], "it does nothing else")
                text = box.inside("/proc/driver/nvidia/params").read_text()
                self.assertTrue(text.startswith("ModifyDeviceFiles: 0\n"), text)
                self.assertIn("DeviceFileMode: 438", text)
                with self.assertRaises(OSError):
                    box.inside("/proc/driver/nvidia/params").open("r+")
                self.assertIn("ModifyDeviceFiles: 1", box.stage.path("/proc/driver/nvidia/params").read_text())
                box.delete()

    def test_run_gives_it_as_well(self):
        for version in ("v1", "v2"):
            with self.subTest(version):
                box = self.gpu(version)
                box.ok("run", "-d", "--bundle", str(box.directory), box.name)
                self.check_files(box)
                self.check_opens(box)
                box.delete()
                self.assertFalse(box.entry().exists())

    def test_a_run_that_has_ended_leaves_no_entry(self):
        box = self.box()
        box.spec["process"]["args"] = ["/bin/busybox", "test", "-c", "/dev/nvidia0"]
        box.ask("0").ok("run", "--bundle", str(box.directory), box.name)
        self.assertFalse(box.exists())
        self.assertFalse(box.entry().exists(), "no delete will follow")

    def test_restore_gives_it_as_well(self):
        box = self.gpu()
        box.create()
        created = box.edited()
        box.delete()
        self.assertNotEqual(created, box.spec)
        box.write()
        box.call("restore", "--bundle", str(box.directory), "--image-path", "/nowhere", box.name)  # there is nothing to restore
        self.assertEqual(box.edited(), created)

    def test_a_container_may_be_called_like_a_verb(self):
        for name in ("create", "delete", "update"):
            with self.subTest(name):
                box = self.box("v1", name).ask("0").start()
                self.check_opens(box)
                box.ok("kill", name, "KILL")
                self.assertTrue(eventually(lambda: box.state()["status"] == "stopped"))
                box.ok("delete", name)
                self.assertFalse(box.entry().exists())

    def test_video_comes_with_its_capability(self):
        box = self.box().ask("0", "NVIDIA_DRIVER_CAPABILITIES=video,utility").start()
        self.assertTrue((box.inside(LIBRARIES) / f"libnvidia-encode.so.{VERSION}").exists())
        self.assertTrue((box.inside(LIBRARIES) / f"libnvidia-ml.so.{VERSION}").exists())
        self.assertFalse((box.inside(LIBRARIES) / f"libcuda.so.{VERSION}").exists())

    def test_another_name_for_the_spec(self):
        """crun has an option for it."""
        self.need_crun("v1")
        box = self.gpu()
        self.config(box.stage, "programs: [crun]")
        box.file.rename(box.directory / "other.json")
        box.ok("create", "--bundle", str(box.directory), "--config", str(box.directory / "other.json"), box.name)
        box.ok("start", box.name)
        self.check_files(box)
        self.check_opens(box)

    def test_options_as_crun_accepts_them(self):
        """A short option may have its value in the same argument."""
        self.need_crun("v1")
        for arguments in (["-b{}"], ["-b", "{}"], ["--bundle={}"]):
            with self.subTest(arguments):
                box = self.gpu()
                self.config(box.stage, "programs: [crun]")
                box.ok("create", *(argument.format(box.directory) for argument in arguments), box.name)
                self.check_opens(box)
                box.delete()

    def test_a_hook_of_nvidias_is_removed(self):
        """docker --gpus puts it there; it would do all of it again, unnoticed by the runtime."""
        box = self.box()
        hook = {"path": "/usr/bin/nvidia-container-runtime-hook", "args": ["nvidia-container-runtime-hook", "prestart"]}
        box.spec["hooks"] = {"prestart": [hook, {"path": "/bin/true"}]}
        box.ask("0").start()
        self.check_opens(box)
        self.assertEqual(box.edited()["hooks"]["prestart"], [{"path": "/bin/true"}])

    def test_a_hook_of_ours_is_replaced_where_nothing_else_is_to_be_done(self):
        """An engine took it from a CDI spec."""
        box = self.box()
        box.spec["hooks"] = {"createContainer": [{"path": RUNTIME, "args": ["holdfast-runtime", "hook", "create-container", "--directory", LIBRARIES]}]}
        box.ask("void").start()
        self.assertEqual(box.edited()["hooks"], {"createContainer": []})
        self.assertEqual(box.opens("/dev/nvidia0"), "ENOENT")

    def add_user_namespace(self, box: Box) -> None:
        mapping = [{"containerID": 0, "hostID": 100000, "size": 65536}]
        box.spec["linux"]["namespaces"].append({"type": "user"})
        box.spec["linux"] |= {"uidMappings": mapping, "gidMappings": mapping}
        # A new one may not show what this stage hides below its own.
        box.spec["mounts"][0] = {"destination": "/proc", "type": "bind", "source": "/proc", "options": ["rbind"]}
        box.spec["linux"]["namespaces"] = [one for one in box.spec["linux"]["namespaces"] if one["type"] != "pid"]
        box.write()
        subprocess.run(["chown", "-R", "100000:100000", box.directory / "rootfs"], check=True)
        box.directory.chmod(0o755)

    def test_a_user_namespace(self):
        box = self.gpu()
        self.add_user_namespace(box)
        box.start()
        self.assertIn("--directory", box.edited()["hooks"]["createContainer"][0]["args"])
        self.check_files(box, has_hook=True)
        self.check_opens(box)

    def test_a_cache_that_the_user_mounts_stays(self):
        """It is not renamed over, neither before the start nor by the hook of a user namespace."""
        for has_user_namespace in (False, True):
            with self.subTest(has_user_namespace):
                box = self.gpu()
                cache = box.directory / "cache"
                cache.write_text("of the user")
                box.spec["mounts"].append({"destination": "/etc/ld.so.cache", "type": "bind", "source": str(cache), "options": ["bind"]})
                box.write()
                if has_user_namespace:
                    self.add_user_namespace(box)
                box.start()
                self.assertEqual(box.inside("/etc/ld.so.cache").read_text(), "of the user")
                self.check_opens(box)
                self.assertEqual("hooks" in box.edited(), has_user_namespace)
                box.delete()

    def test_a_root_that_is_read_only(self):
        box = self.box()
        box.spec["root"]["readonly"] = True
        box.ask("0").start()
        self.check_files(box)


    def read_only(self, box: Box):
        """The machine where the root file system of the box is on a read-only mount."""
        root = box.directory / "rootfs"
        return box.stage.changed(f"mount --bind {root} {root}", f"mount -o remount,bind,ro {root}")

    def test_a_root_that_was_prepared_and_is_mounted_read_only(self):
        box = self.gpu().start()
        box.delete()
        box.write()
        with self.read_only(box) as box.place:
            box.start()
            self.check_files(box)
            self.check_opens(box)
            box.delete()
        self.assertEqual(sorted(os.listdir(box.directory)), ["config.json", "rootfs"])

    def test_a_root_that_is_mounted_read_only_without_files_to_mount_over(self):
        box = self.gpu()
        with self.read_only(box) as place:
            self.check_refused(box, "its root file system is read-only", LIBRARIES, place=place)

    def test_a_user_namespace_with_a_root_that_is_mounted_read_only(self):
        """Its hook cannot write, and the container starts as it would with the mounts alone."""
        box = self.gpu().start()
        box.delete()
        (box.directory / "rootfs/etc/ld.so.cache").write_text("of another format")
        self.add_user_namespace(box)
        with self.read_only(box) as box.place:
            box.start()
            self.assertIn("--directory", box.edited()["hooks"]["createContainer"][0]["args"])
            self.check_opens(box)
            box.delete()
        self.assertEqual((box.directory / "rootfs/etc/ld.so.cache").read_text(), "of another format")

    def test_a_hook_leaves_the_hosts_own_root_alone(self):
        box = self.box()
        for root in ("/", "/.", "/tmp/.."):
            box.spec["root"]["path"] = root
            box.write()
            cache = box.stage.path("/etc/ld.so.cache")
            cache.write_text("of the host")
            state = json.dumps({"ociVersion": "1.0.2", "id": box.name, "status": "creating", "bundle": str(box.directory)})
            options = ["--directory", LIBRARIES, "--link", f"libcuda.so.1::{LIBRARIES}/libcuda-of-a-test.so"]
            done = box.stage.run(RUNTIME, "hook", "create-container", *options, input=state, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(cache.read_text(), "of the host", root)
            self.assertFalse(os.path.lexists(box.stage.path(f"{LIBRARIES}/libcuda-of-a-test.so")))


# ---- What takes devices away ----------------------------------------------------------------------------------------


DENY_ALL = json.dumps({"devices": [{"allow": False, "access": "rwm"}]})


class Kept(Staged):
    """A program in the container that opens its GPU all the time."""

    def watch(self, box: Box):
        opener = self.enterContext(opening(box.pid, box.cgroups(), list(NODES)))
        self.check_last(opener, "ENXIO")
        return opener

    def check_last(self, opener, answer: str) -> None:
        wanted = dict.fromkeys(NODES, answer)
        eventually(lambda: opener.look()["last"] == wanted, 5)
        self.assertEqual(opener.look()["last"], wanted)

    def check_never_lost(self, opener) -> None:
        counts = opener.look()["counts"]
        self.assertEqual(set(counts), {"ENXIO"}, counts)

    def update(self, box: Box) -> None:
        """CPUs where that controller can be had, and nothing else."""
        if box.stage.version == "v1":
            box.ok("update", "--cpuset-cpus", "0", box.name)
        else:
            box.ok("update", "-r", "-", box.name, input="{}", text=True)

    def check_runc(self, version: str, program: str) -> None:
        box = self.gpu(version)
        self.config(box.stage, f"programs: [{program}]")
        opener = self.watch(box.start())
        before = box.rules()
        opener.look()
        for _ in range(3):
            self.update(box)
        self.check_never_lost(opener)
        self.assertEqual(difference(box.rules(), before), [])

    def test_runc_v1(self):
        self.check_runc("v1", "runc")

    def test_runc_v2(self):
        self.check_runc("v2", "runc")

    def test_an_old_runc_v1(self):
        try:
            program = engines.old_runc(CACHE)
        except Unavailable as error:
            self.skipTest(str(error))
        self.check_runc("v1", program)

    def check_crun(self, version: str) -> None:
        """Newer engines name devices in an update: those they know of."""
        self.need_crun(version)
        box = self.gpu(version)
        self.config(box.stage, "programs: [crun]")
        opener = self.watch(box.start())
        before = box.rules()
        (box.directory / "resources.json").write_text(DENY_ALL)
        for arguments, options in (
            (("-r", str(box.directory / "resources.json")), {}),
            ((f"--resources={box.directory}/resources.json",), {}),
            ((f"-r{box.directory}/resources.json",), {}),
            (("-r", "-"), {"input": DENY_ALL, "text": True}),
        ):
            with self.subTest(arguments=arguments):
                box.ok("update", *arguments, box.name, **options)
                opener.look()
                self.check_opens(box)
                self.check_never_lost(opener)
                self.assertEqual(difference(box.rules(), before), [])
        self.assertEqual((box.directory / "resources.json").read_text(), DENY_ALL, "that file is not ours")
        with self.subTest("without us it is lost"):
            box.runtime = which("crun")
            box.ok("update", "-r", str(box.directory / "resources.json"), box.name)
            self.check_last(opener, "EPERM")

    def test_crun_v1(self):
        self.check_crun("v1")

    def test_crun_v2(self):
        self.check_crun("v2")

    def test_what_was_lost_before_comes_back_with_an_update(self):
        for version in ("v1", "v2"):
            with self.subTest(version):
                box = self.gpu(version)
                opener = self.watch(box.start())
                before = box.rules()
                taken = [f"c {major}:{minor} rw" for major, minor in NODES.values()]
                self.assertEqual(box.stage.run(f"{BIN}/holdfast", "revoke", f"pid:{box.pid}", *taken).returncode, 0)
                self.check_last(opener, "EPERM")
                self.update(box)
                opener.look()
                self.check_never_lost(opener)
                self.assertEqual(difference(box.rules(), before), [])
                box.delete()

    def test_an_update_that_fails_says_so_with_the_runtimes_own_code(self):
        box = self.gpu().start()
        plain = box.stage.run(which("runc"), "update", "--cpuset-cpus", "99999", box.name)
        done = box.call("update", "--cpuset-cpus", "99999", box.name)
        self.assertNotEqual(plain.returncode, 0)
        self.assertEqual(done.returncode, plain.returncode)
        self.assertEqual(without_times(done.stderr), without_times(plain.stderr))
        self.check_opens(box)


def without_times(text: str) -> str:
    return re.sub(r'time="[^"]*"|\d{4}-\d\d-\d\dT[\d:.]+Z', "", text)


def without_chance(text: str) -> str:
    """Without what differs between two runs of the very same: times, pids, addresses, and the order of what two processes say."""
    text = re.sub(r'"pid": \d+|"created": "[^"]*"|(?<=nsexec-\d)\[\d+\]|0x[0-9a-f]+', "", without_times(text))
    return "\n".join(sorted(text.split("\n")))


# ---- systemd --------------------------------------------------------------------------------------------------------


class Units(Staged):
    """runc's systemd driver, with a real systemd in namespaces."""

    def check(self, version: str, take) -> None:
        if reason := why_no_systemd():
            self.skipTest(reason)
        host = self.enterContext(systemd_host(version))
        directory = host.directory / "stage"
        gpu_stage.make_driver(directory / "root")
        gpu_stage.make_proc(directory)
        (directory / "config.yaml").write_text(CONFIG)
        lines = gpu_stage.lines_of(directory, PROGRAMS, None)
        host.run("sh", "-ec", "\n".join(lines))
        bundle = host.directory / "gpu"
        make_bundle(bundle, "system.slice:holdfast-test:gpu", [])
        spec = json.loads((bundle / "config.json").read_text())
        spec["process"]["env"] = ["NVIDIA_VISIBLE_DEVICES=0"]
        (bundle / "config.json").write_text(json.dumps(spec))
        runc = (RUNTIME, "--systemd-cgroup")
        host.run(*runc, "run", "-d", "--bundle", bundle, "gpu")
        self.addCleanup(host.run, *runc, "delete", "-f", "gpu", check=False)
        cgroup = host.cgroup / "system.slice/holdfast-test-gpu.scope"
        pid = int((cgroup / "cgroup.procs").read_text().split()[0])
        opener = self.enterContext(opening(pid, [cgroup], list(NODES)))
        opener.look()
        take(host, runc)
        self.assertEqual(opener.look()["last"], dict.fromkeys(NODES, "ENXIO"))
        time.sleep(0.2)
        if version == "v2":  # On v1 systemd replaces the whole list, one entry after another.
            self.assertEqual(set(opener.look()["counts"]), {"ENXIO"})
        self.assertEqual(opener.look()["last"], dict.fromkeys(NODES, "ENXIO"))

    def test_reload_v2(self):
        self.check("v2", lambda host, runc: host.daemon_reload())

    def test_reload_v1(self):
        self.check("v1", lambda host, runc: host.daemon_reload())

    def test_update_v2(self):
        self.check("v2", lambda host, runc: host.run(*runc, "update", "--cpu-share", "512", "gpu", check=False))

    def test_update_v1(self):
        self.check("v1", lambda host, runc: host.run(*runc, "update", "--cpu-share", "512", "gpu"))


# ---- Engines --------------------------------------------------------------------------------------------------------


class Engines(Staged):
    def start(self, make, version: str, *options: str) -> engines.Container:
        try:
            place = lambda version: gpu_stage.stage(version, PROGRAMS)  # noqa: E731
            return self.enterContext(make(version, runtime=RUNTIME, gpu=False, place=place, options=options))
        except Unavailable as error:
            self.skipTest(f"cannot start here: {error}")

    def check(self, make, version: str, *options: str) -> None:
        container = self.start(make, version, *options)
        nodes = dict.fromkeys(NODES, "ENXIO")
        root = pathlib.Path(f"/proc/{container.pid}/root")
        self.assertEqual({path: container.opens(path) for path in NODES}, nodes)
        self.assertEqual(os.readlink(root / LIBRARIES.lstrip("/") / "libcuda.so.1"), f"libcuda.so.{VERSION}")
        opener = self.enterContext(opening(container.pid, container.cgroups(), list(NODES)))
        opener.look()
        if version == "v1":  # The CPU controllers of a hybrid machine belong to v1.
            container.update_cpus()
        if container.restart:
            container.restart()
        if version == "v1":
            container.update_cpus()
        counts = opener.look()["counts"]
        self.assertEqual(set(counts), {"ENXIO"}, counts)
        self.assertTrue(pathlib.Path(f"/proc/{container.pid}").exists())

    def test_docker_v1(self):
        self.check(engines.docker, "v1", "--env", "NVIDIA_VISIBLE_DEVICES=0")

    def test_docker_v2(self):
        self.check(engines.docker, "v2", "--env", "NVIDIA_VISIBLE_DEVICES=0")

    def test_containerd_v1(self):
        self.check(engines.containerd, "v1", "--env", f"NVIDIA_VISIBLE_DEVICES={UUID}")

    def test_containerd_v2(self):
        self.check(engines.containerd, "v2", "--env", f"NVIDIA_VISIBLE_DEVICES={UUID}")

    def test_podman_v1(self):
        self.check(engines.podman, "v1", "--env", "NVIDIA_VISIBLE_DEVICES=0")

    def test_podman_v2(self):
        self.check(engines.podman, "v2", "--env", "NVIDIA_VISIBLE_DEVICES=0")

    def test_a_pod_gets_what_kubelet_allocated_and_keeps_it(self):
        """CRI, as kubelet speaks it; its CPU manager's update names devices, all but ours, and crun carries that out."""
        uid = str(uuid.uuid4())

        @contextlib.contextmanager
        def place(version: str):
            with gpu_stage.stage(version, PROGRAMS) as made, made.config(config("programs: [crun, runc]")):
                allocate(made, uid, [UUID])
                yield made

        try:
            wish = {"NVIDIA_VISIBLE_DEVICES": "all"}
            container = self.enterContext(engines.kubernetes("v1", runtime=RUNTIME, gpu=False, place=place, uid=uid, environment=wish))
        except Unavailable as error:
            self.skipTest(f"cannot start here: {error}")
        nodes = dict.fromkeys(NODES, "ENXIO")
        self.assertEqual({path: container.opens(path) for path in NODES}, nodes)
        self.assertFalse(pathlib.Path(f"/proc/{container.pid}/root/dev/nvidia1").exists())
        container.update_cpus()
        self.assertEqual({path: container.opens(path) for path in NODES}, nodes)

    @contextlib.contextmanager
    def place_with_hook(self, version: str):
        """What `holdfast setup docker` makes: docker offers --gpus where it finds a program of this name when it starts."""
        with gpu_stage.stage(version, PROGRAMS) as made:
            link = f"mount -t tmpfs tmpfs /usr/local/sbin; ln -s {RUNTIME} /usr/local/sbin/nvidia-container-runtime-hook"
            self.assertEqual(made.run("sh", "-ec", link).returncode, 0)
            yield made

    def test_docker_with_gpus(self):
        try:
            container = self.enterContext(engines.docker("v1", runtime=RUNTIME, gpu=False, place=self.place_with_hook, options=("--gpus", "all")))
        except Unavailable as error:
            self.skipTest(f"cannot start here: {error}")
        self.assertEqual({path: container.opens(path) for path in NODES}, dict.fromkeys(NODES, "ENXIO"))
        self.assertNotIn("nvidia-container-runtime-hook", (container.bundle / "config.json").read_text())
        container.update_cpus()
        self.assertEqual({path: container.opens(path) for path in NODES}, dict.fromkeys(NODES, "ENXIO"))

    def test_device_requests_of_compose(self):
        """What compose makes of `reservations.devices`: the driver by its name, and devices by id or a count."""
        for option, request in (("driver=nvidia,device=1", {"Count": 0, "DeviceIDs": ["1"]}), ("driver=nvidia,count=1", {"Count": 1, "DeviceIDs": None})):
            with self.subTest(option), contextlib.ExitStack() as stack:
                try:
                    container = stack.enter_context(engines.docker("v1", runtime=RUNTIME, gpu=False, place=self.place_with_hook, options=("--gpus", option)))
                except Unavailable as error:
                    self.skipTest(f"cannot start here: {error}")
                made = json.loads(container.call("inspect", "-f", "{{json .HostConfig.DeviceRequests}}", container.name))
                self.assertEqual(made, [{"Driver": "nvidia", "Capabilities": [["gpu"]], "Options": {}} | request])
                given, other = ("/dev/nvidia1", "/dev/nvidia0") if request["DeviceIDs"] else ("/dev/nvidia0", "/dev/nvidia1")
                self.assertEqual(container.opens(given), "ENXIO")
                self.assertIn(container.opens(other), ("EPERM", "ENOENT"))

    def test_docker_with_gpus_and_another_runtime_says_what_to_do(self):
        with self.assertRaisesRegex(Unavailable, "--gpus needs the runtime holdfast"):
            with engines.docker("v1", runtime="runc", gpu=False, place=self.place_with_hook, options=("--gpus", "all")):
                pass

    def test_an_engine_shows_our_message(self):
        """The line that says why there is no container is what people get to see."""
        for make in (engines.docker, engines.containerd):
            with self.subTest(make.__name__):
                place = lambda version: gpu_stage.stage(version, PROGRAMS)  # noqa: E731
                wanted = ("--env", "NVIDIA_VISIBLE_DEVICES=99")
                with self.assertRaisesRegex(Unavailable, "no GPU here is called '?\"?99"):
                    self.enterContext(make("v1", runtime=RUNTIME, gpu=False, place=place, options=wanted))


# ---- Containers without a GPU ---------------------------------------------------------------------------------------


def plain_specs() -> dict[str, dict]:
    """Changes to the default spec, by name: keys that are merged into it, recursively."""
    found: dict[str, dict] = {"default": {}}
    kinds = ("mount", "pid", "ipc", "uts", "network", "cgroup")
    for kind in kinds[1:]:
        found[f"without {kind}"] = {"linux": {"namespaces": [{"type": one} for one in kinds if one != kind]}}
    found["mount namespace only"] = {"linux": {"namespaces": [{"type": "mount"}]}}
    found["namespace twice"] = {"linux": {"namespaces": [{"type": "mount"}, {"type": "mount"}]}}
    found["no such namespace"] = {"linux": {"namespaces": [{"type": "mount"}, {"type": "spirit"}]}}
    found["uts by path"] = {"linux": {"namespaces": [{"type": "mount"}, {"type": "uts", "path": "/proc/self/ns/uts"}]}}
    proc = {"destination": "/proc", "type": "proc", "source": "proc"}
    mounts = {
        "tmpfs": {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["size=64k", "noexec"]},
        "bind": {"destination": "/tmp", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]},
        "bind of a file": {"destination": "/etc/hosts", "type": "bind", "source": "/etc/hosts", "options": ["bind"]},
        "new directory": {"destination": "/a/b/c", "type": "tmpfs", "source": "tmpfs"},
        "no source": {"destination": "/tmp", "type": "bind", "source": "/no/such/place", "options": ["bind"]},
        "no such type": {"destination": "/tmp", "type": "nofs", "source": "none"},
        "odd option": {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["frob=1"]},
        "mqueue": {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue"},
        "sysfs": {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]},
        "cgroup": {"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": ["ro"]},
        "devpts": {"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["newinstance"]},
        "shm": {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "size=1m"]},
        "relative": {"destination": "tmp", "type": "tmpfs", "source": "tmpfs"},
        "no destination": {"type": "tmpfs", "source": "tmpfs"},
        "over proc": {"destination": "/proc/sys", "type": "tmpfs", "source": "tmpfs"},
    }
    found |= {f"mount: {name}": {"mounts": [proc, mount]} for name, mount in mounts.items()}
    found["no mounts"] = {"mounts": []}
    sets = {"none": [], "mknod": ["CAP_MKNOD"], "admin": ["CAP_SYS_ADMIN", "CAP_NET_ADMIN"], "unknown": ["CAP_SWIM"]}
    for name, listed in sets.items():
        found[f"capabilities: {name}"] = {"process": {"capabilities": {kind: listed for kind in ("bounding", "effective", "permitted")}}}
    for kind, soft, hard in (
        ("RLIMIT_NOFILE", 64, 64), ("RLIMIT_CORE", 0, 0), ("RLIMIT_STACK", 65536, 1 << 20), ("RLIMIT_NOFILE", 65, 64),
        ("RLIMIT_NONE", 1, 1), ("RLIMIT_AS", 1 << 40, 1 << 40), ("RLIMIT_CPU", 2**63 - 1, 2**64 - 1),
    ):  # fmt: skip
        found[f"{kind} {soft} {hard}"] = {"process": {"rlimits": [{"type": kind, "soft": soft, "hard": hard}]}}
    found["limit twice"] = {"process": {"rlimits": [{"type": "RLIMIT_CORE", "soft": 0, "hard": 0}] * 2}}
    for user in ({"uid": 1000, "gid": 1000}, {"uid": 0, "gid": 0, "additionalGids": [1, 2, 3]}, {"uid": 65534, "gid": 65534, "umask": 63}, {"uid": -1, "gid": 0}, {"uid": 2**32, "gid": 0}):
        found[f"user {user}"] = {"process": {"user": user}}
    for name, change in {
        "read-only root": {"root": {"readonly": True}},
        "absolute root that is not there": {"root": {"path": "/no/such/root"}},
        "no root": {"root": None},
        "host name": {"hostname": "holdfast-test"},
        "host and domain name": {"hostname": "a", "domainname": "b.example"},
        "unicode host name": {"hostname": "grüß-gott"},
        "annotations": {"annotations": {"org.example.a": "1", "ключ": "значение", "": "empty"}},
        "annotation that is a number": {"annotations": {"a": 1}},
        "unknown fields": {"frobnicate": {"deep": [1, {"x": None}]}, "process": {"frob": True}, "linux": {"frob": "é"}},
        "old version": {"ociVersion": "1.0.0"},
        "no version": {"ociVersion": None},
        "odd version": {"ociVersion": "99.0.0"},
        "no process": {"process": None},
        "no arguments": {"process": {"args": []}},
        "no such program": {"process": {"args": ["/bin/nothing"]}},
        "a directory as program": {"process": {"args": ["/bin"]}},
        "relative directory": {"process": {"cwd": "tmp"}},
        "no such directory": {"process": {"cwd": "/nowhere/at/all"}},
        "environment": {"process": {"env": ["PATH=/bin", "A=", "B=ü", "C=a=b", "D=\n"]}},
        "variable without a value": {"process": {"env": ["PATH=/bin", "FOO"]}},
        "variable without a name": {"process": {"env": ["PATH=/bin", "=1"]}},
        "no environment": {"process": {"env": None}},
        "variable that is a number": {"process": {"env": [1]}},
        "no new privileges": {"process": {"noNewPrivileges": True}},
        "oom score": {"process": {"oomScoreAdj": 100}},
        "apparmor that is not there": {"process": {"apparmorProfile": "nothing"}},
        "masked paths": {"linux": {"maskedPaths": ["/proc/kcore", "/nothing"], "readonlyPaths": ["/proc/sys"]}},
        "root propagation": {"linux": {"rootfsPropagation": "shared"}},
        "odd propagation": {"linux": {"rootfsPropagation": "sideways"}},
        "sysctl": {"linux": {"sysctl": {"kernel.msgmax": "8192"}}},
        "sysctl of the host": {"linux": {"sysctl": {"kernel.panic": "1"}}},
        "no linux": {"linux": None},
        "no rules": {"linux": {"resources": None}},
        "empty rules": {"linux": {"resources": {"devices": []}}},
        "allow all": {"linux": {"resources": {"devices": [{"allow": True, "access": "rwm"}]}}},
        "a rule": {"linux": {"resources": {"devices": [{"allow": False, "access": "rwm"}, {"allow": True, "type": "c", "major": 10, "minor": 229, "access": "rw"}]}}},
        "an odd rule": {"linux": {"resources": {"devices": [{"allow": True, "type": "z", "major": 10, "access": "rw"}]}}},
        "odd access": {"linux": {"resources": {"devices": [{"allow": True, "type": "c", "access": "xyz"}]}}},
        "a node": {"linux": {"devices": [{"path": "/dev/fuse", "type": "c", "major": 10, "minor": 229, "fileMode": 438}]}},
        "a pipe": {"linux": {"devices": [{"path": "/dev/pipe", "type": "p"}]}},
        "a node without a path": {"linux": {"devices": [{"type": "c", "major": 10, "minor": 229}]}},
        "a node with odd numbers": {"linux": {"devices": [{"path": "/dev/x", "type": "c", "major": -1, "minor": 2**40}]}},
        "a node with a text as number": {"linux": {"devices": [{"path": "/dev/x", "type": "c", "major": "10", "minor": 1}]}},
        "memory": {"linux": {"resources": {"memory": {"limit": 2**30}}}},
        "memory as a fraction": {"linux": {"resources": {"memory": {"limit": 1e9}}}},
        "memory of nearly nothing": {"linux": {"resources": {"memory": {"limit": 1.5}}}},
        "cpu shares": {"linux": {"resources": {"cpu": {"shares": 512}}}},
        "processes": {"linux": {"resources": {"pids": {"limit": 64}}}},
        "a huge number": {"linux": {"resources": {"pids": {"limit": 2**70}}}},
        "hooks": {"hooks": {"createContainer": [{"path": "/bin/true"}], "poststart": []}},
        "a hook that fails": {"hooks": {"createContainer": [{"path": "/bin/false"}]}},
        "a hook that is not there": {"hooks": {"prestart": [{"path": "/no/such/hook"}]}},
        "seccomp": {"linux": {"seccomp": {"defaultAction": "SCMP_ACT_ALLOW"}}},
        "odd seccomp": {"linux": {"seccomp": {"defaultAction": "SCMP_ACT_SING"}}},
        "terminal without a console": {"process": {"terminal": True}},
        "terminal as text": {"process": {"terminal": "no"}},
    }.items():  # fmt: skip
        found[name] = change
    return found


def laid_over(base, change):
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    made = dict(base)
    for key, value in change.items():
        made[key] = laid_over(base.get(key), value)
        if value is None:
            del made[key]
    return made


def is_dead(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] in "ZX"
    return True


class Plain(Staged):
    """Without a GPU we behave exactly like the runtime."""

    def life(self, box: Box) -> list:
        """What every verb answers, without what must differ."""
        answers = []

        def note(*arguments: str) -> subprocess.CompletedProcess:
            done = box.call(*arguments)
            said = [without_chance(text.replace(box.name, "NAME").replace(str(box.directory), "BUNDLE")) for text in (done.stdout, done.stderr)]
            answers.append((arguments[0], done.returncode, said))
            return done

        made = note("create", "--bundle", str(box.directory), box.name)
        note("state", box.name)
        if made.returncode == 0:
            note("start", box.name)
            pid = box.pid
            note("kill", box.name, "KILL")
            eventually(lambda: is_dead(pid), 10)
            note("state", box.name)
        note("delete", box.name)
        note("state", box.name)
        return answers

    def both(self, version: str, name: str, text: bytes) -> str | None:
        """What differs between us and the runtime, if anything."""
        seen = []
        for runtime in (which("runc"), RUNTIME):
            with boxes.box(stage_of(version)) as box:
                box.runtime = runtime
                box.file.write_bytes(text.replace(b"CGROUP", box.name.encode()))
                before = (box.file.read_bytes(), box.file.stat().st_mtime_ns, box.file.stat().st_ino)
                seen.append(self.life(box))
                after = (box.file.read_bytes(), box.file.stat().st_mtime_ns, box.file.stat().st_ino)
                if before != after:
                    return f"{name}: config.json was touched"
                if box.entry().exists():
                    return f"{name}: an entry in the ledger"
        return None if seen[0] == seen[1] else f"{name}:\n  runc: {seen[0]}\n  ours: {seen[1]}"

    def check(self, version: str, specs: dict[str, bytes]) -> None:
        self.stage(version)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            found = [text for text in pool.map(lambda item: self.both(version, *item), specs.items()) if text]
        self.assertEqual(found, [], "\n".join(found))
        FIGURES.append(f"plain on {version}: {len(specs)} specs, no difference")

    def specs(self) -> dict[str, bytes]:
        base = boxes.usual_spec("/CGROUP")
        return {name: json.dumps(laid_over(base, change), ensure_ascii=len(name) % 2 == 0).encode() for name, change in plain_specs().items()}

    def test_v1(self):
        self.check("v1", self.specs())

    def test_v2(self):
        chosen = list(self.specs().items())
        self.check("v2", dict(chosen[:: 1 if IS_LONG else 9]))

    def test_what_is_no_spec(self):
        usual = json.dumps(boxes.usual_spec("/CGROUP")).encode()
        deep = b"[" * 200_000 + b"]" * 200_000
        self.check("v1", {
            "empty": b"", "truncated": usual[: len(usual) // 2], "a list": b"[]", "null": b"null", "a number": b"1e400",
            "not utf-8": usual.replace(b"PATH=/bin", b"PATH=\xff\xfe"), "nul": usual + b"\0", "two": usual + usual,
            "byte order mark": b"\xef\xbb\xbf" + usual, "keys twice": usual[:-1] + b"," + usual[1:],
            "deep": usual[:-1] + b',"x":' + deep + b"}", "deep and truncated": usual[:-1] + b',"x":' + deep[:200_000],
            "many keys": usual[:-1] + b"".join(b',"k%d":%d' % (i, i) for i in range(20_000)) + b"}",
        })  # fmt: skip

    def test_a_large_spec(self):
        usual = json.dumps(boxes.usual_spec("/CGROUP")).encode()
        self.check("v1", {"large": usual[:-1] + b',"x":"' + b"y" * (100_000_000 if IS_LONG else 20_000_000) + b'"}'})

    def test_no_spec_and_no_bundle(self):
        for missing in ("config.json", "."):
            seen = []
            for runtime in (which("runc"), RUNTIME):
                box = self.box().write()
                box.runtime = runtime
                box.file.unlink()
                bundle = str(box.directory) if missing != "." else f"{box.directory}/none"
                done = box.call("create", "--bundle", bundle, box.name)
                seen.append((done.returncode, done.stdout, without_times(done.stderr).replace(str(box.directory), "B")))
            self.assertEqual(seen[0], seen[1])
            self.assertNotEqual(seen[0][0], 0)

    def test_version_and_help_name_both(self):
        stage = self.stage()
        plain, ours = stage.run(which("runc"), "--version"), stage.run(RUNTIME, "--version")
        self.assertEqual(ours.stdout.splitlines()[:-1], plain.stdout.splitlines())
        self.assertRegex(ours.stdout.splitlines()[-1], rf"^holdfast-runtime \d+\.\d+\.\d+, over {which('runc')}$")
        self.assertRegex(stage.run(RUNTIME, "--help").stdout, r"^holdfast-runtime \d")

    def test_a_log_of_decisions(self):
        stage = self.stage()
        with stage.config(config("log: /run/decisions.log")):
            box = self.box().ask("0")
            self.assertEqual(box.create().returncode, 0)
            log = stage.path("/run/decisions.log").read_text()
            box.delete()
        self.assertIn(f"container='{box.name}' given=/dev/nvidia", log)
        self.assertIn("program=", log)

    def test_a_key_behind_what_looks_like_a_comment_counts(self):
        stage = self.stage()
        box = self.box().write()  # it asks for no device, so that the file is parsed for this key alone
        for line in ('{driver_root: "/run #1", log: /run/decisions.log}', "{driver_root: /run#1, log: /run/decisions.log}"):
            with self.subTest(line), stage.config(f"runtime: {line}\n"):
                box.start().delete()
                path = stage.path("/run/decisions.log")
                self.assertIn(f"container='{box.name}' asks for no device", path.read_text())
                path.unlink()

    def test_the_engines_log_says_why_a_hook_is_left(self):
        box = self.box("v1")
        box.spec["process"]["capabilities"] = {kind: ["CAP_MKNOD"] for kind in ("bounding", "effective", "permitted")}
        for visible, is_left in (("0", True), ("all", False)):
            with self.subTest(visible):
                box.ask(visible)
                done = box.call("--log", "/run/engine.log", "--log-format", "json", "create", "--bundle", str(box.directory), box.name)
                self.assertEqual(done.returncode, 0, done.stderr)
                path = box.stage.path("/run/engine.log")
                lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
                found = [line["level"] for line in lines if "the container gets a hook: it has CAP_MKNOD and not every GPU" in line["msg"]]
                self.assertEqual(found, ["info"] if is_left else [])
                self.assertNotIn("hook", done.stderr)
                box.delete()
                path.unlink(missing_ok=True)

    def test_verbs_that_are_passed_on(self):
        stage = self.stage()
        for arguments in (
            [], ["state", "nonexist"], ["state"], ["kill", "create", "KILL"], ["list"], ["ps", "run"],
            ["delete", "nonexist"], ["delete", "-f", "nonexist"], ["update", "nonexist"], ["create", "--help"], ["features"],
            ["frobnicate"], ["--root"], ["spec", "--help"], ["events", "nonexist"], ["pause", "delete"], ["create"], ["run"],
            ["create", "a", "b"], ["exec", "nonexist", "true"], ["--no-such-option"], ["create", "--no-such", "x"],
        ):  # fmt: skip
            with self.subTest(arguments):
                plain, ours = stage.run(which("runc"), *arguments), stage.run(RUNTIME, *arguments)
                self.assertEqual(ours.returncode, plain.returncode)
                self.assertEqual(without_times(ours.stdout), without_times(plain.stdout))
                self.assertEqual(without_times(ours.stderr), without_times(plain.stderr))


# ---- Many -----------------------------------------------------------------------------------------------------------


class Many(Staged):
    def test_nothing_leaks(self):
        count = 1000 if IS_LONG else 60
        stage = self.stage("v1")
        mounts = lambda: (pathlib.Path("/proc/mounts").read_text(), stage.path("/proc/mounts").read_text())  # noqa: E731
        groups = lambda: sorted(path for mount in engines.CGROUPS.iterdir() for path in os.listdir(mount) if str(os.getpid()) in path)  # noqa: E731
        directories = lambda: sorted(os.listdir(stage.path("/run/runc"))) if stage.path("/run/runc").exists() else []  # noqa: E731
        before = (mounts(), groups(), directories(), stage.ledger(), sorted(os.listdir(stage.path("/run"))))
        inner = stage.run("cat", "/proc/self/mounts").stdout

        def live(number: int) -> str | None:
            with boxes.box(stage) as box:
                box.ask(("0", "all", UUID)[number % 3]).start()
                listed = sorted(os.listdir(box.directory))
                opens = box.opens("/dev/nvidia0")
                box.ok("delete", "-f", box.name)
                gone = not box.entry().exists() and not any((mount / box.name).exists() for mount in engines.CGROUPS.iterdir())
                fine = opens == "ENXIO" and listed == ["config.json", "rootfs"] and gone
                return None if fine else f"{number}: {opens} {listed} gone={gone}"

        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            wrong = [text for text in pool.map(live, range(count)) if text]
        self.assertEqual(wrong, [])
        FIGURES.append(f"{count} containers with a GPU, 8 at a time: {(time.monotonic() - began) / count * 1e3:.0f} ms each")
        after = (mounts(), groups(), directories(), stage.ledger(), sorted(os.listdir(stage.path("/run"))))
        self.assertEqual(after[1:4], before[1:4])
        self.assertEqual(after[0], before[0])
        self.assertEqual(stage.run("cat", "/proc/self/mounts").stdout, inner)

    def test_one_rootfs_many_times(self):
        """No file more with every start."""
        box = self.gpu()
        listed = []
        for _ in range(6):
            box.write()
            box.start()
            box.delete()
            listed.append(sorted(str(path.relative_to(box.directory)) for path in box.directory.rglob("*")))
        self.assertEqual(listed[0], listed[-1])
        with self.subTest("also with a spec that has all of it already"):
            again = box.file.read_bytes()
            box.start()
            self.check_opens(box)
            self.assertEqual(box.file.read_bytes(), again)


# ---- Requests that cannot be met ------------------------------------------------------------------------------------

OTHER_DEV = [
    "mkdir -p /run/other-dev && mount -t tmpfs -o mode=755 none /run/other-dev",
    "cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/fd /dev/std* /run/other-dev/",
]
MOVE_DEV = ["mount --move /run/other-dev /dev"]
NO_UVM = ["sed /nvidia-uvm/d /proc/devices >/run/other-devices", "mount --bind /run/other-devices /proc/devices"]
NO_DRIVER = [*OTHER_DEV, *MOVE_DEV, "mount -t tmpfs none /proc/driver", "sed /nvidia/d /proc/devices >/run/other-devices", "mount --bind /run/other-devices /proc/devices"]


class Refused(Staged):
    def test_an_unknown_gpu(self):
        for visible, named in (("99", "99"), ("0,99", "99"), ("GPU-9", "GPU-9"), ("-1", "-1"), ("0:7", "0:7"), ("zero", "zero"), ("MIG-1", "MIG-1"), ("ü\"\\", "ü")):
            with self.subTest(visible):
                self.check_refused(self.gpu("v1", visible), "NVIDIA_VISIBLE_DEVICES", named, "holdfast devices")

    def test_no_driver(self):
        box = self.gpu()
        with box.stage.changed(*NO_DRIVER) as branch:
            self.check_refused(box, "NVIDIA_VISIBLE_DEVICES=0", "modprobe nvidia", place=branch)

    def test_no_uvm(self):
        box = self.gpu()
        with box.stage.changed(*NO_UVM, *OTHER_DEV, "cp -a /dev/nvidia0 /dev/nvidia1 /dev/nvidiactl /run/other-dev/", *MOVE_DEV) as branch:
            self.check_refused(box, "/dev/nvidia-uvm", "modprobe nvidia-uvm", place=branch)

    def test_no_libraries_for_the_driver(self):
        box = self.gpu()
        with box.stage.config("runtime:\n  driver_root: /usr/share/nothing\n"):
            self.check_refused(box, "/usr/share/nothing", "runtime.driver_root")
        with self.subTest("of another version"), box.stage.config("runtime:\n  driver_root: /usr/share\n"):
            self.check_refused(box, VERSION, "runtime.driver_root")

    def test_an_unknown_cdi_device(self):
        self.check_refused(self.box().ask("nvidia.com/gpu=77"), "nvidia.com/gpu=77", "/etc/cdi")

    def test_missing_nodes_of_the_host_are_created(self):
        """No other program creates them if the driver was loaded by hand."""
        for missing in ("/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl"):
            with self.subTest(missing):
                box = self.gpu()
                there = [path for path in NODES if path != missing]
                with box.stage.changed(*OTHER_DEV, *(f"cp -a {path} /run/other-dev/" for path in there), *MOVE_DEV) as branch:
                    with box.stage.config("runtime: ["):
                        self.check_refused(box, "/etc/holdfast/config.yaml", place=branch)
                        self.assertNotEqual(branch.run("stat", missing).returncode, 0, "a start that is refused changes nothing")
                    box.place = branch
                    box.start()
                    self.check_opens(box)
                    self.assertEqual(branch.run("stat", "-c", "%t:%T", missing).stdout.split(), [f"{NODES[missing][0]:x}:{NODES[missing][1]:x}"])
                    box.delete()

    def test_a_broken_config(self):
        for text in ("runtime: [", "runtime: {environment: bogus}", "runtime: {frob: 1}", "\t", "runtime: 7", "\0\xff"):
            with self.subTest(text):
                box = self.gpu()
                with box.stage.config(text):
                    self.check_refused(box, "/etc/holdfast/config.yaml")
                    plain = self.box().write().start()
                    for arguments in (["state", plain.name], ["kill", plain.name, "0"], ["ps", plain.name], ["update", "--cpuset-cpus", "0", plain.name], ["exec", plain.name, "/bin/busybox", "true"], ["list"], ["--version"]):
                        plain.ok(*arguments)
                    plain.ok("delete", "-f", plain.name)

    def test_a_config_that_breaks_later(self):
        """A container that is there can be updated and deleted all the same, and its entry goes."""
        box = self.gpu().start()
        with box.stage.config("runtime: ["):
            self.assertEqual(box.state()["status"], "running")
            self.assertEqual(box.call("update", "--cpuset-cpus", "0", box.name).returncode, 0)
            self.check_opens(box)
            box.ok("delete", "-f", box.name)
            self.assertFalse(box.entry().exists())

    def test_no_runtime_to_become(self):
        box = self.box().write()
        with box.stage.config(config("programs: [/no/such/runtime, nothing-of-that-name]")):
            self.check_refused(box, "/no/such/runtime", "runtime.programs")

    def test_ourselves_as_the_runtime(self):
        """Becoming ourselves again and again would never end."""
        box = self.box().write()
        with box.stage.config(config(f"programs: [{RUNTIME}, holdfast-runtime]")):
            self.check_refused(box, "runtime.programs")

    def test_odd_capabilities(self):
        self.check_refused(self.box().ask("0", "NVIDIA_DRIVER_CAPABILITIES=compue"), "did you mean compute?")
        for value in ("bogus", "compute,bogus", ",,", "ALL", "\\", "compute " * 2000):
            with self.subTest(value[:20]):
                box = self.box().ask("0", f"NVIDIA_DRIVER_CAPABILITIES={value}")
                done = box.create()
                self.assertIn(done.returncode, (0, 1), done.stderr)
                if done.returncode != 0:
                    self.refused(done, "NVIDIA_DRIVER_CAPABILITIES")
                box.delete()

    def check_written(self, text: bytes, *texts: str) -> None:
        box = self.gpu()
        box.file.write_bytes(text)
        self.check_refused(box, *(texts or (str(box.file),)))

    def spec_text(self) -> bytes:
        box = self.gpu()
        return box.file.read_bytes()

    def test_a_spec_that_is_truncated(self):
        text = self.spec_text()
        for size in range(text.index(b"NVIDIA") + 30, len(text), len(text) // 6):
            with self.subTest(size):
                self.check_written(text[:size])

    def test_a_spec_with_a_key_twice(self):
        text = self.spec_text()
        self.check_written(text[:-1] + b"," + text[1:])

    def test_a_spec_with_other_types(self):
        for old, new in ((b'"linux": {', b'"linux": 7, "x": {'), (b'"mounts": [', b'"mounts": "none", "x": ['), (b'"resources": {', b'"devices": {"a": 1}, "resources": {')):
            with self.subTest(new):
                text = self.spec_text()
                self.assertIn(old, text)
                self.check_written(text.replace(old, new, 1))

    def test_a_deep_spec_does_not_end_us(self):
        text = self.spec_text()
        deep = b"[" * 200_000 + b"]" * 200_000
        box = self.gpu()
        box.file.write_bytes(text[:-1] + b',"x":' + deep + b"}")
        done = box.create()
        self.assertIn(done.returncode, (0, 1), done.stderr[-300:])
        self.assertLess(len(done.stderr), 2000)

    def test_a_large_spec_is_completed_as_well(self):
        box = self.gpu()
        text = box.file.read_bytes()
        box.file.write_bytes(text[:-1] + b',"x":"' + b"y" * (100_000_000 if IS_LONG else 5_000_000) + b'"}')
        box.start()
        self.check_opens(box)

    def test_no_space_for_the_spec(self):
        box = self.gpu()
        box.spec["root"]["path"] = str(box.directory / "rootfs")
        box.write()
        full = box.directory / "full"
        full.mkdir()
        steps = (f"mount -t tmpfs -o size=8k none {full}", f"cp {box.file} {full}/config.json", f"dd if=/dev/zero of={full}/rest bs=1k 2>/dev/null || true")
        with box.stage.changed(*steps) as branch:
            box.place = branch
            done = box.call("create", "--bundle", str(full), box.name)
            self.refused(done, "config.json", "No space left")
            self.assertEqual(branch.run("cat", full / "config.json").stdout, box.file.read_text())
            self.assertEqual(branch.run("ls", "-A", full).stdout.split(), ["config.json", "rest"])
        self.assertFalse(box.entry().exists())
        self.assertFalse(box.exists())

    def test_a_spec_that_cannot_be_written(self):
        box = self.gpu()
        root = box.directory / "rootfs"
        steps = [f"mount --bind {path} {path} && mount -o remount,bind,{mode} {path}" for path, mode in ((box.directory, "ro"), (root, "rw"))]
        with box.stage.changed(*steps) as branch:
            box.place = branch
            self.refused(box.create(), "config.json", "Read-only")
        self.assertFalse(box.entry().exists())

    def test_no_ledger_no_container(self):
        """What could not be kept is not given; and the spec is as it was."""
        box = self.gpu()
        before = box.file.read_bytes()
        with box.stage.changed("mkdir -p /run/holdfast", "mount -t tmpfs -o ro none /run/holdfast") as branch:
            box.place = branch
            self.refused(box.create(), "/run/holdfast")
        self.assertFalse(box.exists())
        self.assertEqual(box.file.read_bytes(), before)


# ---- The ledger and names that are used again -----------------------------------------------------------------------


class Names(Staged):
    def test_a_name_that_is_taken_leaves_the_first_alone(self):
        first, second = self.gpu().start(), self.gpu()
        kept = first.entry().read_bytes()
        done = second.call("create", "--bundle", str(second.directory), first.name)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(first.entry().read_bytes(), kept)
        with self.subTest("also where the second wants no GPU"):
            plain = self.box().write()
            self.assertNotEqual(plain.call("create", "--bundle", str(plain.directory), first.name).returncode, 0)
            self.assertEqual(first.entry().read_bytes(), kept)

    def test_a_create_that_fails_leaves_no_entry(self):
        box = self.gpu()
        box.spec["hooks"] = {"createRuntime": [{"path": "/bin/false"}]}
        done = box.write().create()
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse(box.exists())
        self.assertFalse(box.entry().exists())

    def test_the_next_of_that_name_is_given_nothing_that_the_last_one_had(self):
        box = self.box()
        box.spec["process"]["args"] = ["/bin/busybox", "true"]
        box.ask("0").ok("run", "--bundle", str(box.directory), box.name)
        box.spec = boxes.usual_spec(box.cgroup)
        box.write().start()
        before = box.rules()
        box.ok("update", "--cpuset-cpus", "0", box.name)
        self.assertEqual(difference(box.rules(), before), [])
        self.assertFalse(box.entry().exists())

    def test_names_that_are_no_names(self):
        for name in ("../x", "a/b", ".", "..", "", "x" * 5000, "-x"):
            with self.subTest(name[:20]):
                box = self.gpu()
                done = box.call("create", "--bundle", str(box.directory), name)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(box.stage.ledger(), [])


# ---- A hostile image ------------------------------------------------------------------------------------------------


class Hostile(Staged):
    """Symlinks in an image that lead out of it. (Of /dev itself runc 1.1 follows one, with us or without.)"""

    def snapshot(self, directory: pathlib.Path) -> list:
        return sorted((str(path), path.lstat().st_mtime_ns, path.lstat().st_mode, path.read_bytes() if path.is_file() else b"") for path in [directory, *directory.rglob("*")])

    def check(self, link: str, target: str, *, runtime: str = "runc", is_file: bool = False) -> None:
        box = self.gpu()
        self.config(box.stage, f"programs: [{runtime}]")
        victim = box.directory / "victim"
        (victim / "directory").mkdir(parents=True)
        (victim / "file").write_text("mine")
        before = self.snapshot(victim)
        place = box.directory / "rootfs" / link
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            place.rmdir()
        up = "../" * 20
        place.symlink_to(target.format(victim=victim, up=up, name=box.directory.name))
        done = box.create()
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(self.snapshot(victim), before, done.stderr)
        self.assertEqual(sorted(os.listdir(box.directory)), ["config.json", "rootfs", "victim"])
        box.delete()

    def test_links(self):
        places = ("etc", "usr", "usr/lib", "usr/lib/x86_64-linux-gnu", "usr/bin", "proc")
        files = ("etc/ld.so.cache", "etc/ld.so.cache~", "etc/ld.so.conf", "usr/lib/x86_64-linux-gnu/libcuda.so.1", "usr/lib/x86_64-linux-gnu/libcuda.so", f"usr/lib/x86_64-linux-gnu/libcuda.so.{VERSION}", "usr/bin/nvidia-smi")
        for runtime in ("runc", "crun"):
            for place in places:
                for target in ("{victim}/directory", "{up}tmp/{name}/victim/directory"):
                    if runtime == "runc" or target.startswith("{up}"):
                        with self.subTest(place, target=target, runtime=runtime):
                            self.check(place, target, runtime=runtime)
            for place in files:
                with self.subTest(place, runtime=runtime):
                    self.check(place, "{up}tmp/{name}/victim/file", runtime=runtime)

    def test_loops_and_odd_files(self):
        for link, target in (("etc", "etc"), ("usr", "lib/../usr"), ("etc/ld.so.cache", "/proc/self/fd/0"), ("etc/ld.so.cache", "/dev/stdin"), ("etc", "/proc/1/root/etc")):
            with self.subTest(link, target=target):
                self.check(link, target)

    def test_an_image_with_a_library_of_its_own(self):
        """A file of the image that is not a symlink is kept."""
        box = self.gpu()
        place = box.directory / "rootfs" / LIBRARIES.lstrip("/")
        place.mkdir(parents=True)
        (place / "libcuda.so.1").write_text("of the image")
        (place / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.1.of-the-image")
        box.start()
        self.assertEqual((box.inside(LIBRARIES) / "libcuda.so.1").read_text(), "of the image")
        self.assertEqual(os.readlink(box.inside(LIBRARIES) / "libnvidia-ml.so.1"), f"libnvidia-ml.so.{VERSION}")

    def test_a_program_of_the_image_is_not_run(self):
        box = self.gpu()
        loader = box.directory / "rootfs/lib64/ld-linux-x86-64.so.2"  # it searches no directory: ldconfig is needed
        loader.parent.mkdir()
        loader.write_text("a loader")
        mark = box.directory / "rootfs/ran"
        for name in ("sbin/ldconfig", "sbin/ldconfig.real", "usr/sbin/ldconfig"):
            (box.directory / "rootfs" / name).parent.mkdir(parents=True, exist_ok=True)
            (box.directory / "rootfs" / name).write_text("#!/bin/busybox sh\n/bin/busybox touch /ran\n")
            (box.directory / "rootfs" / name).chmod(0o755)
        box.start()
        self.assertFalse(mark.exists())
        self.assertTrue(box.inside("/etc/ld.so.cache").exists())


# ---- Specs that others completed -------------------------------------------------------------------------------------


def devices_and_rules(nodes: dict[str, tuple[int, int]]) -> tuple[list, list]:
    listed = [{"path": path, "type": "c", "major": major, "minor": minor, "fileMode": 0o666} for path, (major, minor) in nodes.items()]
    rules = [{"allow": True, "type": "c", "major": major, "minor": minor, "access": "rw"} for major, minor in nodes.values()]
    return listed, rules


def allocate(stage: Stage, uid: str, ids: list[str]) -> pathlib.Path:
    """As kubelet writes down what a device plugin gave."""
    file = stage.path("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint")
    file.parent.mkdir(parents=True, exist_ok=True)
    entry = {"PodUID": uid, "ContainerName": "main", "ResourceName": "nvidia.com/gpu", "DeviceIDs": {"-1": ids}, "AllocResp": ""}
    registered = {"nvidia.com/gpu": [UUID, SECOND_UUID]}
    file.write_text(json.dumps({"Data": {"PodDeviceEntries": [entry], "RegisteredDevices": registered}, "Checksum": 1}))
    file.chmod(0o600)
    return file


class Completed(Staged):
    def with_nodes(self, box: Box, nodes: dict[str, tuple[int, int]]) -> Box:
        listed, rules = devices_and_rules(nodes)
        box.spec["linux"]["devices"] = listed
        box.spec["linux"]["resources"]["devices"] += rules
        return box.write()

    def test_a_gpu_without_its_helpers(self):
        """A device plugin names the GPU, and forgets what CUDA needs beside it."""
        for version in ("v1", "v2"):
            with self.subTest(version):
                box = self.with_nodes(self.box(version), GPU_ALONE).start()
                self.check_opens(box)
                self.assertEqual(box.opens("/dev/nvidia1"), "ENOENT")
                box.delete()

    def test_stale_device_numbers(self):
        """They change with a restart of the machine; a spec that was made before has the old ones."""
        for version in ("v1", "v2"):
            with self.subTest(version):
                stale = NODES | {"/dev/nvidia-uvm": (500, 0), "/dev/nvidia-uvm-tools": (500, 1)}
                box = self.with_nodes(self.box(version), stale)
                done = box.create()
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("/dev/nvidia-uvm: c 500:0 → c 511:0", done.stderr.replace("c500", "c 500").replace("c511", "c 511"))
                self.check_opens(box)
                self.assertFalse(allows(box.rules(), "c", 500, 0, "rw"))
                box.delete()

    # In a pod

    def pod(self, uid: str, visible: str | None) -> Box:
        box = self.box("v1", secrets.token_hex(32))  # as containerd calls them
        box.cgroup = f"/kubepods/besteffort/pod{uid}/{box.name}"
        self.addCleanup(engines.remove_cgroups, {box.cgroup})
        box.spec["linux"]["cgroupsPath"] = box.cgroup
        box.spec["annotations"] = {"io.kubernetes.cri.container-name": "main", "io.kubernetes.cri.container-type": "container"}
        return box.ask(visible) if visible is not None else box.write()

    def test_in_a_pod_an_image_asks_in_vain(self):
        box = self.pod("11111111-aaaa-bbbb-cccc-000000000001", "all")
        done = box.create()
        self.assertEqual(done.returncode, 0, done.stderr)
        box.ok("start", box.name)
        for path in NODES:
            self.assertEqual(box.opens(path), "ENOENT")
        self.assertFalse(any(allows(box.rules(), "c", major, minor, "r") for major, minor in NODES.values()))

    def test_in_a_pod_it_gets_what_kubelet_allocated(self):
        for visible in (SECOND_UUID, "all"):
            with self.subTest(visible):
                uid = "11111111-aaaa-bbbb-cccc-000000000002"
                box = self.pod(uid, visible)
                file = allocate(box.stage, uid, [SECOND_UUID])
                self.addCleanup(file.unlink, missing_ok=True)
                box.start()
                mine = {path: numbers for path, numbers in NODES.items() if path != "/dev/nvidia0"} | gpu_stage.SECOND_NODE
                self.check_opens(box, nodes=mine)
                self.assertEqual(box.opens("/dev/nvidia0"), "ENOENT")
                self.assertFalse(allows(box.rules(), "c", 195, 0, "r"))
                box.delete()


# ---- Becoming the runtime -------------------------------------------------------------------------------------------

REPORTER = r"""
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern char** environ;
int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) printf("argument %s\n", arguments[i]);
  for (char** one = environ; *one; ++one) printf("variable %s\n", *one);
  DIR* directory = opendir("/proc/self/fd");
  for (struct dirent* entry; (entry = readdir(directory));) {
    char path[300], target[300];
    snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
    ssize_t size = readlink(path, target, sizeof target - 1);
    if (size > 0 && atoi(entry->d_name) != dirfd(directory)) target[size] = 0, printf("fd %s %s\n", entry->d_name, atoi(entry->d_name) > 2 ? target : "");
  }
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, NULL, &blocked);
  for (int i = 1; i < 32; ++i) {
    struct sigaction action;
    sigaction(i, NULL, &action);
    if (sigismember(&blocked, i) || action.sa_handler != SIG_DFL) printf("signal %d %d %d\n", i, sigismember(&blocked, i), action.sa_handler == SIG_IGN);
  }
  printf("directory %s\numask %o\n", getcwd(NULL, 0), umask(0));
  for (char line[100]; fgets(line, sizeof line, stdin);) printf("input %s", line);
  for (int i = 1; i < count; ++i) if (strcmp(arguments[i], "--die") == 0) kill(getpid(), 9);
  return getenv("CODE") ? atoi(getenv("CODE")) : 0;
}
"""


class Becoming(Staged):
    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="hf-e2e-")))
        self.reporter = self.directory / "reporter"
        source = "#include <sys/stat.h>\n" + REPORTER
        subprocess.run(["cc", "-static", "-x", "c", "-", "-o", self.reporter], input=source, text=True, check=True, timeout=60)
        self.config(self.stage(), f"programs: [{self.reporter}]")

    def both(self, *arguments: str, **options) -> tuple[subprocess.CompletedProcess, subprocess.CompletedProcess]:
        return self.stage().run(self.reporter, *arguments, **options), self.stage().run(RUNTIME, *arguments, **options)

    def same(self, plain: subprocess.CompletedProcess, ours: subprocess.CompletedProcess) -> None:
        lines = [sorted(done.stdout.splitlines()) for done in (plain, ours)]
        self.assertEqual(lines[1], lines[0])
        self.assertEqual((ours.returncode, ours.stderr), (plain.returncode, plain.stderr))
        self.assertTrue(any(line.startswith("argument ") for line in lines[0]), lines)

    def test_everything_reaches_it_unchanged(self):
        kept = os.open("/dev/null", os.O_RDONLY)
        os.dup2(kept, 63, inheritable=True)
        os.close(kept)
        self.addCleanup(os.close, 63)
        environment = {"PATH": "/bin", "EMPTY": "", "ODD": "a=b\nc", "CODE": "37", "NOTIFY_SOCKET": "/x", "_LIBCONTAINER_X": "1", "LANG": "ü"}
        for arguments in (
            ["state", "x"], ["--root", "/a b", "kill", "x", "TERM"], ["create", "--bundle", "/nowhere", "ü"], ["exec", "x", "sh", "-c", "a  'b\""],
            ["delete", "x"], ["update", "x"], ["start", ""], ["frob", "-", "--", "\n"], ["run", "x"], ["features", "x" * 100_000],
        ):  # fmt: skip
            with self.subTest(arguments[0]):
                plain, ours = self.both(*arguments, env=environment, pass_fds=(63,), cwd="/usr")
                self.same(plain, ours)
                self.assertEqual(ours.returncode, 37)
                self.assertIn("fd 63 /dev/null", ours.stdout)

    def test_without_an_environment(self):
        self.same(*self.both("state", "x", env={}))

    def test_signals_as_they_were(self):
        """Go's programs leave some ignored and some blocked."""
        def odd() -> None:
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

        for verb in ("state", "create", "delete"):
            plain, ours = self.both(verb, "x", preexec_fn=odd)
            self.same(plain, ours)
            self.assertIn("signal 1 0 1", ours.stdout)

    def test_standard_input_reaches_it(self):
        self.same(*self.both("update", "-r", "-", "x", input="one\ntwo\n", text=True))

    def test_a_death_by_signal_looks_like_one(self):
        plain, ours = self.both("state", "--die")
        self.assertEqual(ours.returncode, plain.returncode)

    def test_with_an_entry_it_is_a_child_and_behaves_the_same(self):
        """An update and a delete of a container that was given something come back to us first."""
        name = engines.unique_name("child")
        ledger = self.stage().path(LEDGER)
        ledger.mkdir(parents=True, exist_ok=True, mode=0o700)
        node = {"path": "/dev/nvidia0", "type": "c", "major": 195, "minor": 0, "access": "rw"}
        file = ledger / f"{name}.json"
        self.addCleanup(file.unlink, missing_ok=True)
        for arguments, options in ((["update", "--cpu-share", "5", name], {}), (["update", "-r", "-", name], {"input": "{}\n", "text": True}), (["delete", "--force", name], {})):
            for code in ("37", "0"):
                with self.subTest(arguments, code=code):
                    file.write_text(json.dumps({"version": 1, "container": name, "bundle": str(self.directory), "nodes": [node]}))
                    file.chmod(0o600)
                    plain, ours = self.both(*arguments, env={"CODE": code, "PATH": "/usr/bin"}, **options)
                    self.assertEqual(sorted(ours.stdout.splitlines()), sorted(plain.stdout.splitlines()))
                    self.assertEqual(ours.returncode, int(code))
                    self.assertEqual(file.exists(), arguments[0] == "update" or code == "37")


if __name__ == "__main__":
    run_suite(verbosity=1)
