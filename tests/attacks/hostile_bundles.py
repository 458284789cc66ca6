#!/usr/bin/env python3
"""A bundle's config.json is made to crash holdfast-runtime, to make it hang, or to mean something else to the runtime.

The attacker has influence on how bundles are written: the file has keys twice, is deeply nested, has values of other
types, is a FIFO or a symlink, or its root is elsewhere. holdfast-runtime must neither crash nor hang if the runtime
does not, must not give a GPU that the container as the runtime sees it is not owed, and must not write outside the
bundle.
"""

import contextlib
import json
import os
import pathlib
import subprocess

from attack_support import Box, RuntimeCase, eventually, listing, make_victim
from support import run_suite

LONGEST = 40  # seconds
UID = "11111111-aaaa-bbbb-cccc-000000000151"


def twice(text: str, key: str, first: object, second: object) -> str:
    """Writes a key that occurs once in the text a second time: a reader uses the first or the last."""
    marker = f'"{key}": '
    begin = text.index(marker)
    end = begin + len(marker) + len(json.dumps(json.JSONDecoder().raw_decode(text[begin + len(marker) :])[0]))
    return text[:begin] + f"{marker}{json.dumps(first)}, {marker}{json.dumps(second)}" + text[end:]


def is_runc(pid: int) -> bool:
    """Has the process become the runtime?"""
    with contextlib.suppress(OSError):  # It has just ended.
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "runc"
    return False


class Bundles(RuntimeCase):
    def attempt_file(self, box: Box) -> subprocess.CompletedProcess:
        done = self.attempt(box, timeout=LONGEST)
        self.assertLess(len(done.stderr), 100_000)
        return done

    def check_no_gpu(self, box: Box, done: subprocess.CompletedProcess) -> None:
        if done.returncode == 0:
            self.assertEqual(box.opens("/dev/nvidia0"), "ENOENT")
        self.assertFalse(box.entry().exists(), "an entry in the ledger")

    # Keys twice

    def test_two_environments(self):
        """The runtime uses the last, which asks for nothing."""
        for last in ("NVIDIA_VISIBLE_DEVICES=void", "A=1"):
            with self.subTest(last):
                box = self.box().write()
                environments = [["PATH=/bin", "NVIDIA_VISIBLE_DEVICES=0"], ["PATH=/bin", last]]
                box.file.write_text(twice(box.file.read_text(), "env", *environments))
                self.check_no_gpu(box, self.attempt_file(box))
                box.delete()

    def check_cgroups(self, rewrite) -> None:
        """A container that runs in a pod, and is owed nothing there, says by a second key that it is in none."""
        box = self.pod(UID, "all")
        outside = f"/{box.name}"
        box.stage.cgroups.add(outside)
        box.file.write_text(rewrite(box.file.read_text(), box.cgroup, outside))
        done = self.attempt_file(box)
        if done.returncode == 0 and "kubepods" in pathlib.Path(f"/proc/{box.pid}/cgroup").read_text():
            self.check_no_gpu(box, done)

    def test_two_cgroups(self):
        self.check_cgroups(lambda text, inside, outside: twice(text, "cgroupsPath", inside, outside))
        self.check_cgroups(lambda text, inside, outside: twice(text, "cgroupsPath", outside, inside))

    def test_a_second_cgroup_in_upper_case(self):
        """runc, like every Go program, treats it as the same key."""
        key = '"cgroupsPath": '
        self.check_cgroups(
            lambda text, inside, outside: text.replace(
                f'{key}"{inside}"', f'{key}"{outside}", {key.upper()}"{inside}"'
            )
        )

    # Size, depth and types

    def test_a_deep_value(self):
        for value in ("[" * 200_000, '{"a":' * 100_000 + "1" + "}" * 100_000):
            box = self.gpu()
            box.file.write_text(box.file.read_text()[:-1] + f', "x": {value}}}')
            self.attempt_file(box)
            box.delete()

    def test_other_types(self):
        values = {"process": [1], "linux": "x", "annotations": [["cdi.k8s.io/a", "b"]], "hooks": {"createContainer": 1}}
        for key, value in values.items():
            with self.subTest(key):
                box = self.gpu()
                box.spec[key] = value
                if key == "process":
                    box.spec["x"] = "NVIDIA_VISIBLE_DEVICES=0"
                done = self.attempt_file(box.write())
                self.assertEqual(done.returncode, 1, "such a container cannot start")
                self.check_no_gpu(box, done)

    def test_odd_values(self):
        for place, value in {
            ("process", "env"): [None, 1, ["NVIDIA_VISIBLE_DEVICES=0"], "NVIDIA_VISIBLE_DEVICES"],
            ("linux", "devices"): [{"path": "/dev/nvidia0", "type": "c", "major": -1, "minor": 2**70}],
            ("linux", "resources"): {"devices": [{"allow": "yes", "type": 1, "major": 1.5, "access": "\0"}]},
        }.items():  # fmt: skip
            with self.subTest(place):
                box = self.gpu()
                box.spec[place[0]][place[1]] = value
                box.spec["x"] = "NVIDIA_VISIBLE_DEVICES"
                self.check_no_gpu(box, self.attempt_file(box.write()))

    # Files that are not regular

    def test_a_fifo(self):
        """A writer writes part of a spec and closes it. runc reads it again and blocks; holdfast-runtime must not."""
        box = self.gpu()
        text = box.file.read_bytes()
        box.file.unlink()
        os.mkfifo(box.file)
        command = box.stage.inside([box.runtime, "create", "--bundle", str(box.directory), box.name])
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        waiting = subprocess.Popen(command, **quiet)
        self.addCleanup(waiting.wait)
        self.addCleanup(waiting.kill)
        pipe = os.open(box.file, os.O_WRONLY)  # blocks until it is read
        os.write(pipe, text[: len(text) // 2])
        os.close(pipe)
        self.assertTrue(eventually(lambda: waiting.poll() is not None or is_runc(waiting.pid), LONGEST))
        self.assertFalse(box.entry().exists(), "an entry in the ledger")

    def test_a_symlink(self):
        """It is replaced or refused; its target is not written to."""
        box = self.gpu()
        victim = make_victim(box)
        box.file.rename(victim / "config.json")
        box.file.symlink_to(victim / "config.json")
        before = listing(victim)
        done = self.attempt_file(box)
        self.check_untouched(victim, before, done.stderr)

    # The root

    def test_a_root_that_is_a_symlink(self):
        for target in ("victim/directory", "/proc/self/cwd"):
            with self.subTest(target):
                box = self.gpu()
                victim = make_victim(box)
                before = listing(victim)
                (box.directory / "link").symlink_to(target)
                box.spec["root"]["path"] = "link"
                done = self.attempt_file(box.write())
                self.assertEqual(done.returncode, 1, "runc refuses such a root")
                self.check_untouched(victim, before, done.stderr)

    def test_a_root_that_is_a_file(self):
        for path in ("config.json", "", "\0"):
            with self.subTest(path):
                box = self.gpu()
                box.spec["root"]["path"] = path
                self.check_no_gpu(box, self.attempt_file(box.write()))

    def test_a_large_and_odd_bundle_that_is_fine(self):
        """A root outside the bundle, unknown fields, a hundred kilobytes of labels."""
        box = self.gpu()
        (box.directory / "rootfs").rename(box.directory / "elsewhere")
        box.spec["root"]["path"] = str(box.directory / "elsewhere")
        box.spec["frob"] = {"deep": [1, {"x": None}]}
        box.spec["annotations"] = {f"label-{number}": "ü" * 50 for number in range(1000)}
        self.check_gpu(box.write().start())


if __name__ == "__main__":
    run_suite()
