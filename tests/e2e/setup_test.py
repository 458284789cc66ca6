#!/usr/bin/env python3
"""`holdfast setup` on copies of real config files, read by the real engines afterwards."""

import json
import os
import pathlib
import signal
import stat
import subprocess
import tempfile
import time
import unittest

import engines
from support import HOLDFAST, holdfast, run_suite, which

FETCHED = pathlib.Path(HOLDFAST).parent / "packages/containerd-sid/usr/bin"  # by nri_test.py
DATA = pathlib.Path(__file__).parents[1] / "data/setup"


class SetupCase(unittest.TestCase):
    def setUp(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("needs root")
        directory = tempfile.TemporaryDirectory(prefix="hf-e2e-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.runtime = self.directory / "holdfast-runtime"
        self.runtime.write_text('#!/bin/sh\nexec runc "$@"\n')
        self.runtime.chmod(0o755)

    def copy(self, name: str) -> pathlib.Path:
        path = self.directory / name
        path.write_bytes((DATA / name).read_bytes())
        return path

    def setup_engine(self, engine: str, path: pathlib.Path, *arguments: str, status: int = 0) -> str:
        more = () if "--undo" in arguments else ("--runtime-path", str(self.runtime))
        done = holdfast("setup", engine, "--config", str(path), *more, *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def refused(self, contains: str, *arguments: str) -> None:
        done = holdfast("setup", *arguments)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(contains, done.stderr)
        self.assertEqual(done.stdout, "")


class Engines(SetupCase):
    def test_every_file_comes_back_byte_for_byte(self):
        for source in sorted(DATA.iterdir()):
            engine = {"crio.conf": "crio", "containers.conf": "podman"}.get(source.name, source.name.split("-")[0])
            for options in ((), ("--default",)):
                with self.subTest(file=source.name, options=options):
                    path = self.copy(source.name)
                    path.chmod(0o640)
                    os.chown(path, 0, 4)
                    self.setup_engine(engine, path, *options)
                    edited = path.read_bytes()
                    self.assertIn(str(self.runtime).encode(), edited)
                    before = path.stat()
                    self.assertIn("nothing to do", self.setup_engine(engine, path, *options))
                    after = path.stat()
                    self.assertEqual((before.st_mtime_ns, before.st_ino), (after.st_mtime_ns, after.st_ino))
                    self.assertEqual((stat.S_IMODE(after.st_mode), after.st_gid), (0o640, 4))
                    self.setup_engine(engine, path, "--undo")
                    self.assertEqual(path.read_bytes(), source.read_bytes())
                    self.assertEqual(sorted(entry.name for entry in self.directory.iterdir()), sorted(["holdfast-runtime", path.name]))
                    self.assertIn("nothing to undo", self.setup_engine(engine, path, "--undo"))
                    path.unlink()

    def test_the_diff_is_one_that_patch_takes(self):
        if not which("patch"):
            self.skipTest("needs patch")
        for name in ("docker-features.json", "docker-no-newline.json", "docker-crlf.json", "containerd-1.7-node.toml"):
            with self.subTest(name):
                path = self.copy(name)
                shown = json.loads(self.setup_engine(name.split("-")[0], path, "--default", "--dry-run", "-o", "json", status=1))
                self.assertEqual(path.read_bytes(), (DATA / name).read_bytes(), "a dry run writes nothing")
                self.assertFalse(shown["done"])
                patched = subprocess.run(
                    ["patch", "--binary", str(path)], input=shown["files"][0]["diff"].encode(), check=False, capture_output=True
                )
                self.assertEqual(patched.returncode, 0, patched.stdout)
                by_patch = path.read_bytes()
                path = self.copy(name)
                self.setup_engine(name.split("-")[0], path, "--default")
                self.assertEqual(path.read_bytes(), by_patch)

    def test_the_answer_has_the_verdict_the_diff_and_the_command(self):
        for engine, command in (("docker", "systemctl reload docker"), ("containerd", "systemctl restart containerd")):
            path = self.directory / "new" / engine
            lines = self.setup_engine(engine, path).splitlines()
            self.assertIn("holdfast is a runtime now", lines[0])
            self.assertEqual(lines[1:3], ["--- /dev/null", f"+++ {path}"])
            self.assertTrue(any(line.endswith(command) for line in lines), lines)
            self.setup_engine(engine, path, "--undo")
            self.assertFalse(path.exists(), "a file that was created is removed")

    def test_features_of_docker_stay(self):
        path = self.copy("docker-features.json")
        old = json.loads(path.read_text())
        self.setup_engine("docker", path, "--default")
        new = json.loads(path.read_text())
        self.assertEqual(new.pop("default-runtime"), "holdfast")
        self.assertEqual(new.pop("runtimes"), {"holdfast": {"path": str(self.runtime)}})
        self.assertEqual(new, old)
        self.assertEqual(list(new), list(old))

    def test_changes_made_since_are_kept(self):
        path = self.copy("docker-nvidia.json")
        self.setup_engine("docker", path, "--default")
        path.write_text(path.read_text().replace("overlay2", "btrfs"))
        self.setup_engine("docker", path, "--undo")
        self.assertEqual(path.read_text(), (DATA / "docker-nvidia.json").read_text().replace("overlay2", "btrfs"))

    def test_bad_files_and_arguments_get_one_clear_line_and_nothing_is_written(self):
        broken = self.directory / "broken"
        link = self.directory / "link"
        link.symlink_to(broken)
        theirs = self.directory / "theirs"
        theirs.write_text("#!/bin/sh\n")
        theirs.chmod(0o777)
        common = ("--runtime-path", str(self.runtime))
        for text, engine, names in (
            ('{\n "a": 1,,\n}\n', "docker", "broken: line 2, column "),
            ("[]", "docker", "braces"),
            ("version = 2\n[a\n", "containerd", "broken: line 2, column "),
            ("version = 9\n", "containerd", "version 9"),
            ("= 1", "podman", "line 1, column "),
        ):
            with self.subTest(text):
                broken.write_text(text)
                self.refused(names, engine, "--config", str(broken), *common)
                self.assertEqual(broken.read_text(), text)
        for name, text, says in (
            ("config.toml", "# File generated by k3s. DO NOT EDIT.\nversion = 3\n", f"--config {self.directory}/config-v3.toml.d/99-holdfast.toml"),
            ("config-v3.toml.tmpl", '{{ template "base" . }}\n', "by hand"),
        ):
            path = self.directory / name
            path.write_text(text)
            self.refused(says, "containerd", "--config", str(path), *common)
            self.assertEqual(path.read_text(), text)
            path.unlink()
        self.refused("by hand", "containerd", "--config", str(self.directory / "config.toml.tmpl"), *common)
        self.refused("symlink", "docker", "--config", str(link), *common)
        self.refused("No such file", "docker", "--config", str(broken), "--runtime-path", "/no/such/program")
        self.refused("others than root", "docker", "--config", str(broken), "--runtime-path", str(theirs))
        self.refused("absolute", "docker", "--config", str(broken), "--runtime-path", "holdfast-runtime")
        self.refused("holdfast-runtime", "docker", "--config", str(broken))
        self.refused("there are docker, containerd, crio, podman, node", *())
        self.refused("nonsense", "nonsense")
        self.refused("--undo", "docker", "--undo", "--default")
        self.refused("--undo", "containerd", "--undo", "--pod-annotations")
        self.refused("--undo", "node", "--undo", "--load-modules")
        self.refused("regular file", "docker", "--config", "/dev/null", *common)

    def test_a_full_disk_leaves_the_file_as_it_was(self):
        """On a file system of its own that has no space for the new text."""
        script = (
            f"mount -t tmpfs -o size=16k none {self.directory}/full; cd {self.directory}/full; cp {DATA}/docker-features.json d.json; "
            f"head -c 1M /dev/zero > filler 2>/dev/null || true; {HOLDFAST} setup docker --config d.json "
            f"--runtime-path {self.runtime} 2>&1; echo rc=$?; cmp d.json {DATA}/docker-features.json && ls -A"
        )
        (self.directory / "full").mkdir()
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False, timeout=60)
        self.assertIn("No space left on device", done.stdout, done.stderr)
        self.assertIn("rc=2\nd.json\nfiller\n", done.stdout)


class Restart(SetupCase):
    def test_one_that_failed_is_undone_and_repeated_by_the_next_run(self):
        """With a systemctl that fails as long as a file is there, and a /run of its own."""
        path = self.copy("containerd-1.7-node.toml")
        broken, restarts, systemctl = (self.directory / name for name in ("broken", "restarts", "systemctl"))
        systemctl.write_text(f'#!/bin/sh\ncase $1 in cat) [ "$2" = containerd ]; exit;; is-active) exit;; esac\n[ ! -e {broken} ] && echo "$@" >> {restarts}\n')
        systemctl.chmod(0o755)
        broken.touch()
        common = f"{HOLDFAST} setup containerd --restart --config {path}"
        change, undo = f"{common} --runtime-path {self.runtime}", f"{common} --undo"
        commands = [change, change, f"cmp {path} {DATA}/{path.name}", f"{change} --unit other", f"{change} --unit other --may-fail", f"cmp {path} {DATA}/{path.name}"]
        commands += [f"rm {broken}", change, change, f"{change} --default", change, f"touch {broken}", undo, f"rm {broken}", undo, undo]
        script = f"mount -t tmpfs none /run; PATH={self.directory}:$PATH; " + "".join(f"{command}; echo rc=$?; " for command in commands) + "ls /run/holdfast"
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False, timeout=60)
        statuses = [int(line.removeprefix("rc=")) for line in done.stdout.splitlines() if line.startswith("rc=")]
        self.assertEqual(statuses, [1, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], done.stdout + done.stderr)
        self.assertEqual(restarts.read_text(), "restart containerd\n" * 4, done.stdout)
        self.assertIn(f"containerd: {path} is as it was: containerd did not run with the new one\n", done.stdout)
        self.assertEqual(done.stderr.count("(--unit names the unit of the engine)"), 2, done.stderr)
        self.assertTrue(done.stdout.endswith("rc=0\n"), "the marker is left")


class RealEngines(SetupCase):
    def test_containerd_reads_it(self):
        containerd = which("containerd")
        if not containerd:
            self.skipTest("needs containerd")
        for name, plugin in (
            ("containerd-1.4-version-1.toml", "cri"),
            ("containerd-1.6-default.toml", "io.containerd.grpc.v1.cri"),
            ("containerd-1.7-node.toml", "io.containerd.grpc.v1.cri"),
            (None, "io.containerd.grpc.v1.cri"),
        ):
            with self.subTest(name):
                path = self.copy(name) if name else self.directory / "new.toml"
                self.setup_engine("containerd", path, "--default")
                done = subprocess.run([containerd, "--config", path, "config", "dump"], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                head = "runtimes.holdfast.options]"
                self.assertIn(head, done.stdout)
                options = done.stdout.split(head)[1].split("[")[0]
                self.assertIn(f'BinaryName = "{self.runtime}"', options)
                if name in ("containerd-1.4-version-1.toml", "containerd-1.7-node.toml"):
                    self.assertIn("SystemdCgroup = true", options)
                self.assertIn('default_runtime_name = "holdfast"', done.stdout)
                self.assertIn(plugin, done.stdout)

    def test_containerd_2_imports_a_drop_in_as_k3s_has_it(self):
        given = [path for path in os.environ.get("HOLDFAST_CONTAINERDS", "").split(":") if path]
        containerd = pathlib.Path(given[-1] if given else FETCHED) / "containerd"
        if not containerd.exists():
            self.skipTest("needs a containerd 2: e2e.nri fetches one")
        main, drop_in = self.directory / "config.toml", self.directory / "config-v3.toml.d/99-holdfast.toml"
        runtimes = "plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes"
        main.write_text(
            f"# File generated by k3s. DO NOT EDIT.\nversion = 3\nimports = ['{drop_in.parent}/*.toml']\n"
            f"[{runtimes}.runc]\nruntime_type = 'io.containerd.runc.v2'\n[{runtimes}.runc.options]\nSystemdCgroup = true\n"
        )
        self.setup_engine("containerd", drop_in, "--default")
        done = subprocess.run([containerd, "--config", main, "config", "dump"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, program in (("runc", ""), ("holdfast", self.runtime)):
            self.assertIn(f"[{runtimes}.{name}.options]", done.stdout)
            options = done.stdout.split(f"[{runtimes}.{name}.options]")[1].split("[")[0]
            self.assertIn(f"BinaryName = '{program}'", options)
            self.assertIn("SystemdCgroup = true", options)
        self.assertIn("default_runtime_name = 'holdfast'", done.stdout)
        self.setup_engine("containerd", drop_in, "--undo")
        self.assertFalse(drop_in.exists())

    def test_docker_reads_it(self):
        dockerd = which("dockerd")
        if not dockerd:
            self.skipTest("needs dockerd")
        if "--validate" not in subprocess.run([dockerd, "--help"], capture_output=True, text=True, check=False).stdout:
            self.skipTest("this dockerd has no --validate")
        path = self.directory / "daemon.json"
        for text in ("", '{"features": {"buildkit": true}}', '{\n\t"runtimes": {"x": {"path": "/bin/x"}}\n}'):
            path.write_text(text)
            self.setup_engine("docker", path, "--default")
            done = subprocess.run([dockerd, "--validate", "--config-file", path], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            path.unlink()

    def test_a_running_docker_takes_it_with_a_reload(self):
        try:
            self.check_reload()
        except engines.Unavailable as why:
            self.skipTest(str(why))

    def check_reload(self) -> None:
        server, client = engines.program("dockerd"), engines.program("docker")
        engines.need("containerd")
        with engines.scratch_directory() as directory, engines.view("v1") as machine:
            config = directory / "daemon.json"
            config.write_text(f'{{"deprecated-key-path": "{directory}/key.json", "features": {{"buildkit": true}}}}')
            old = config.read_bytes()
            where = ["--data-root", f"{directory}/data", "--exec-root", f"{directory}/exec", "--pidfile", f"{directory}/pid"]
            quiet = ["--iptables=false", "--ip6tables=false", "--ip-masq=false", "--bridge=none", "--storage-driver=vfs"]

            def call(*arguments: str) -> str:
                return machine.call(client, "--config", f"{directory}", "-H", f"unix://{directory}/d.sock", *arguments)

            def runtimes_after_reload() -> tuple[dict, str]:
                reloads = (directory / "log").read_text().count("Reloaded configuration")
                os.kill(int((directory / "pid").read_text()), signal.SIGHUP)
                end = time.monotonic() + 30
                while (directory / "log").read_text().count("Reloaded configuration") == reloads and time.monotonic() < end:
                    time.sleep(0.05)
                known, default = call("info", "--format", "{{json .Runtimes}} {{.DefaultRuntime}}").rsplit(maxsplit=1)
                return json.loads(known), default

            command = [server, "-H", f"unix://{directory}/d.sock", "--config-file", str(config), *where, *quiet]
            with engines.daemon(machine, *command, ready=lambda: call("version"), log=directory / "log"):
                self.setup_engine("docker", config, "--default")
                known, default = runtimes_after_reload()
                self.assertEqual((known["holdfast"]["path"], default), (str(self.runtime), "holdfast"))
                self.assertIn("systemctl restart docker", self.setup_engine("docker", config, "--undo"))
                self.assertEqual(config.read_bytes(), old)
                known, default = runtimes_after_reload()
                self.assertIn("holdfast", known, "a reload forgets no runtime: the command is another one then")

    def test_podman_reads_it(self):
        podman = which("podman")
        if not podman or not which("runc"):
            self.skipTest("needs podman and runc")
        path = self.copy("containers.conf")
        self.setup_engine("podman", path, "--default")
        environment = {**os.environ, "CONTAINERS_CONF": str(path)}
        where = ["--root", str(self.directory / "root"), "--runroot", str(self.directory / "run"), "--storage-driver=vfs"]
        asked = "{{.Host.OCIRuntime.Name}} {{.Host.OCIRuntime.Path}}"
        command = [podman, "--cgroup-manager=cgroupfs", *where, "info", "--format", asked]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.stdout.split(), ["holdfast", str(self.runtime)], done.stderr)


class Node(SetupCase):
    def test_nodes_and_links_of_a_machine_and_back(self):
        """In a mount namespace with an empty /dev and a made-up /etc/udev: the machine's own stay as they are."""
        script = (
            "set -e; mount -t tmpfs none /dev; mknod /dev/null c 1 3; mknod /dev/fuse c 10 229; mkdir -p /dev/char; "
            f"ln -s ../nonsense /dev/char/10:229; mkdir -p {self.directory}/udev; mount -t tmpfs none /etc; mkdir /etc/udev; "
            f"{HOLDFAST} setup node --dry-run && exit 9; ls /etc/udev; {HOLDFAST} setup node; readlink /dev/char/10:229; "
            f"{HOLDFAST} setup node; {HOLDFAST} setup node --quiet; cat /etc/udev/rules.d/71-holdfast.rules; "
            f"{HOLDFAST} setup node --undo; ls /etc/udev/rules.d"
        )
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("would: link /dev/char/10:229 to ../fuse: it leads to ../nonsense", done.stdout)
        self.assertIn("did: link /dev/char/10:229 to ../fuse", done.stdout)
        self.assertIn("\n../fuse\n", done.stdout)
        self.assertIn("nothing to do", done.stdout)
        self.assertIn(f'RUN+="{HOLDFAST} setup node --quiet"', done.stdout)
        self.assertIn("did: remove /etc/udev/rules.d/71-holdfast.rules", done.stdout)


if __name__ == "__main__":
    run_suite(verbosity=1)
