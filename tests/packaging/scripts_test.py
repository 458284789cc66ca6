#!/usr/bin/env python3
"""scripts_test.py: the scripts of the packages on made-up hosts, and tools/third-party on a made-up sysroot."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))

from suite import run_suite  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
REMOVALS = {"deb": [f"{ROOT}/packaging/deb/prerm", "remove"], "rpm": [f"{ROOT}/packaging/rpm/preun", "0"]}
UPGRADES = {"deb": [f"{ROOT}/packaging/deb/prerm", "upgrade"], "rpm": [f"{ROOT}/packaging/rpm/preun", "1"]}
RUNTIME = "/usr/bin/holdfast-runtime"
HOOK = f"containerEdits: {{hooks: [{{hookName: createContainer, path: {RUNTIME}}}]}}\n"


class Scripts(unittest.TestCase):
    """With a /run, an /etc, a /var/lib and processes of their own. The programs that they call do nothing."""

    def setUp(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("needs root")
        directory = tempfile.TemporaryDirectory(prefix="hf-scripts-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        for name in ("holdfast", "systemctl", "deb-systemd-helper", "deb-systemd-invoke"):
            self.program(name, "exit 0")
        self.program("conmon", "sleep 60")

    def program(self, name: str, script: str) -> None:
        path = self.directory / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run_script(self, script: list[str], files: dict[str, str], before: str = "") -> tuple[str, list[str]]:
        """What it says, and the files that are left of these."""
        lines = ["set -e", *(f"mount -t tmpfs none {place}" for place in ("/run", "/etc", "/var/lib")), f"PATH={self.directory}/bin:$PATH"]
        for number, (path, text) in enumerate(files.items()):
            (self.directory / f"file{number}").write_text(text)
            lines += [f"mkdir -p {pathlib.Path(path).parent}", f"cp {self.directory}/file{number} {path}"]
        lines += [before, f"sh {' '.join(script)}", *(f"[ ! -e {path} ] || echo {path}" for path in files)]
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", "\n".join(lines)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stderr, done.stdout.splitlines()

    def test_a_removal_counts_the_containers_that_need_the_runtime(self) -> None:
        tasks = "io.containerd.runtime.v2.task"
        files = {
            f"/run/containerd/{tasks}/k8s.io/a/options.json": f'{{"binary_name":"{RUNTIME}","systemd_cgroup":true}}',
            f"/run/containerd/{tasks}/k8s.io/a/runtime": RUNTIME,
            f"/run/containerd/{tasks}/k8s.io/b/options.json": '{"binary_name":"/usr/bin/runc"}',
            f"/run/docker/containerd/daemon/{tasks}/moby/c/runtime": RUNTIME,
        }
        conmon = f"{self.directory}/bin/conmon -r {RUNTIME} >/dev/null 2>&1 &\nwhile ! grep -qsx conmon /proc/$!/comm; do sleep 0.1; done"
        for name, script in REMOVALS.items():
            with self.subTest(name):
                said, left = self.run_script(script, files, conmon)
                self.assertIn(f"holdfast: 3 containers still have the runtime {RUNTIME}: ", said)
                self.assertEqual(left, list(files))
                self.assertEqual(self.run_script(script, {})[0], "")
                self.assertEqual(self.run_script(UPGRADES[name], files, conmon)[0], "")

    def test_a_removal_takes_its_own_specs_along_and_names_others_with_its_hook(self) -> None:
        ours = {"/run/cdi/holdfast-nvidia.yaml": HOOK, "/run/cdi/holdfast-rdma.json": "{}"}
        others = {"/etc/cdi/nvidia.yaml": HOOK, "/run/cdi/nvidia.yaml": HOOK, "/etc/cdi/vendor.yaml": "kind: v.com/c\n"}
        for name, script in REMOVALS.items():
            with self.subTest(name):
                said, left = self.run_script(script, ours | others)
                self.assertEqual(left, list(others))
                self.assertEqual([line.split()[4] for line in said.splitlines()], ["/etc/cdi/nvidia.yaml", "/run/cdi/nvidia.yaml"], said)
                self.assertEqual(self.run_script(UPGRADES[name], ours)[1], list(ours))

    def test_a_purge_leaves_nothing_with_kubelet_or_node_feature_discovery(self) -> None:
        kubelet = "/var/lib/kubelet"
        ours = [
            "/etc/holdfast/config.yaml", "/run/holdfast/restart-containerd", f"{kubelet}/device-plugins/holdfast-nvidia.com-gpu-1.sock",
            f"{kubelet}/plugins_registry/gpu.holdfast.dev-reg.sock", f"{kubelet}/plugins/gpu.holdfast.dev/claims.json",
            "/etc/kubernetes/node-feature-discovery/features.d/holdfast",
        ]  # fmt: skip
        theirs = [f"{kubelet}/device-plugins/kubelet.sock", f"{kubelet}/plugins/gpu.nvidia.com/claims.json", "/etc/kubernetes/node-feature-discovery/features.d/gfd"]
        files = dict.fromkeys(ours + theirs, "")
        self.assertEqual(self.run_script([f"{ROOT}/packaging/deb/postrm", "purge"], files), ("", theirs))
        self.assertEqual(self.run_script([f"{ROOT}/packaging/deb/postrm", "remove"], files), ("", list(files)))

    def test_a_purge_takes_the_backups_of_setup_where_the_engine_does_not_need_them(self) -> None:
        docker, containerd, crio = "/etc/docker/daemon.json", "/etc/containerd/config.toml", "/etc/crio/crio.conf.d/99-holdfast.conf"
        podman = "/etc/containers/containers.conf.d/99-holdfast.conf"
        files = {
            docker: '{"runtimes": {"holdfast": {"path": "/usr/bin/holdfast-runtime"}}}', f"{docker}.holdfast-backup": "{}",
            containerd: "version = 3", f"{containerd}.holdfast-backup": "version = 2",
            crio: "[crio.runtime.runtimes.holdfast]", f"{podman}.holdfast-backup": "the only copy",
        }  # fmt: skip
        said, left = self.run_script([f"{ROOT}/packaging/deb/postrm", "purge"], files)
        self.assertEqual(left, [name for name in files if name != f"{containerd}.holdfast-backup"])
        gone = "still names the runtime holdfast, which is gone: take it out and restart the engine"
        mv = f"the file from before is {docker}.holdfast-backup: 'mv {docker}.holdfast-backup {docker}' takes it back"
        self.assertEqual(said.splitlines(), [f"holdfast: {docker} {gone}", f"holdfast: {mv}", f"holdfast: {crio} {gone}"])

    def test_a_removal_says_how_to_take_the_runtime_out_of_the_engines(self) -> None:
        self.program("holdfast", '[ "$2" != docker ] || exit 1')
        for name, script in REMOVALS.items():
            with self.subTest(name):
                said = "holdfast: docker still has the runtime holdfast: run 'holdfast setup docker --undo' before the removal, or install holdfast again for it\n"
                self.assertEqual(self.run_script(script, {})[0], said)
                self.assertEqual(self.run_script(UPGRADES[name], {})[0], "")


class ThirdParty(unittest.TestCase):
    def test_a_sysroot_is_asked_for_its_own_names(self) -> None:
        with tempfile.TemporaryDirectory(prefix="hf-scripts-") as directory:
            tree = pathlib.Path(directory)
            (tree / "tools").mkdir()
            for name in ("third-party", "packages.txt"):
                shutil.copy(ROOT / "tools" / name, tree / "tools")
            documents = tree / "sysroot/usr/share/doc"
            for name in ("libboost0.1-dev", "libstdc++-0-dev", "libgtest-dev", "base-files"):
                (documents / name).mkdir(parents=True)
                (documents / name / "copyright").write_text(name)
            done = subprocess.run([tree / "tools/third-party", "arm64", tree / "sysroot", "holdfast"], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(os.listdir(tree / "build/arm64/third-party")), ["libboost0.1-dev", "libstdc++-0-dev"])


if __name__ == "__main__":
    run_suite(verbosity=2)
