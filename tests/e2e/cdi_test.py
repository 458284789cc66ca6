#!/usr/bin/env python3
"""CDI specs of this machine's own devices: written, checked, resolved, and used by an engine that knows CDI."""

import contextlib
import json
import os
import pathlib
import stat
import tempfile
import unittest

import engines
from engines import FUSE, Unavailable
from support import Case, holdfast, holdfast_json, run_suite

VENDOR = "hf-e2e.test"
DIRECTORY = pathlib.Path("/var/run/cdi")


@contextlib.contextmanager
def installed(text: str, name: str = "hf-e2e.yaml"):
    """A spec where engines search for it; a directory that was created is removed afterwards."""
    made = not DIRECTORY.exists()
    DIRECTORY.mkdir(mode=0o755, exist_ok=True)
    file = DIRECTORY / name
    file.write_text(text)
    file.chmod(0o644)
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)
        if made:
            DIRECTORY.rmdir()


class Cdi(Case):
    def setUp(self) -> None:
        super().setUp()
        if not pathlib.Path(FUSE).exists():
            self.skipTest(f"needs {FUSE}")
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="hf-e2e-")))

    def spec(self, *arguments: str) -> str:
        return self.ok("cdi", "generate", "--class", "fuse", "--vendor", VENDOR, *arguments)

    def test_a_spec_lists_what_the_host_has(self) -> None:
        spec = json.loads(self.spec("-o", "json"))
        self.assertEqual(spec["kind"], f"{VENDOR}/fuse")
        self.assertEqual([device["name"] for device in spec["devices"]], ["0", "fuse", "all"])
        [node] = spec["devices"][0]["containerEdits"]["deviceNodes"]
        live = os.stat(FUSE)
        self.assertEqual((node["path"], node["major"], node["minor"]), (FUSE, os.major(live.st_rdev), os.minor(live.st_rdev)))
        self.assertEqual(node["fileMode"], stat.S_IMODE(live.st_mode))
        self.assertEqual(json.loads(self.ok("cdi", "generate", "--class", "fuse", "-o", "json"))["kind"], "holdfast.dev/fuse")

    def test_names_are_those_asked_for(self) -> None:
        names = [device["name"] for device in json.loads(self.spec("-o", "json", "--name-strategy", "index", "--no-all"))["devices"]]
        self.assertEqual(names, ["0"])

    def test_a_file_is_written_in_the_format_of_its_extension(self) -> None:
        for name in ("new/a.json", "a.yaml"):
            file = self.directory / name
            self.assertEqual(self.spec("--file", f"{file}"), "")
            self.assertEqual(file.read_text().startswith("{"), name.endswith(".json"))
            self.assertEqual(self.ok("cdi", "check", f"{file}").splitlines()[0], "nothing is wrong (1 spec, 3 devices)")
        self.assertEqual(sorted(path.name for path in self.directory.iterdir()), ["a.yaml", "new"], "nothing is left beside it")

    def test_a_spec_that_cannot_be_generated_is_refused(self) -> None:
        self.refused(2, "no device class 'nothing'; there are nvidia", "cdi", "generate", "--class", "nothing")
        self.refused(2, "open", "cdi", "check", f"{self.directory}/none.yaml")
        self.refused(1, "no spec of /etc/cdi or /var/run/cdi has it", "cdi", "resolve", "hf-e2e.test/fuse=none")
        if not pathlib.Path("/proc/driver/nvidia/version").exists():
            self.refused(1, "this host has none", "cdi", "generate")

    def test_a_stale_spec_is_detected(self) -> None:
        spec = json.loads(self.spec("-o", "json"))
        spec["devices"][0]["containerEdits"]["deviceNodes"][0]["minor"] += 1
        spec["containerEdits"] = {"mounts": [{"hostPath": "/no/such/file", "containerPath": "/x"}], "additionalGIDs": [7]}
        file = self.directory / "stale.json"
        file.write_text(json.dumps(spec))
        done = holdfast("cdi", "check", f"{file}", "-o", "json")
        self.assertEqual(done.returncode, 1)
        report = json.loads(done.stdout)
        self.assertFalse(report["well"])
        self.assertEqual(sorted(finding["code"] for finding in report["findings"]), ["HF-308", "HF-310", "HF-310"])
        text = holdfast("cdi", "check", f"{file}").stdout
        self.assertIn("3 problems", text)
        self.assertIn("/no/such/file: no such file", text)
        self.assertIn("additionalGIDs needs 0.7.0", text)

    def test_installed_devices_are_listed_and_resolved(self) -> None:
        with installed(self.spec()) as file:
            devices = {device["name"]: device for device in holdfast_json("cdi", "list")["devices"]}
            self.assertEqual(devices[f"{VENDOR}/fuse=0"]["state"], "ok")
            self.assertEqual(devices[f"{VENDOR}/fuse=0"]["file"], f"{file}")
            self.assertIn(f"{VENDOR}/fuse=all", self.ok("cdi", "list"))
            resolved = holdfast_json("cdi", "resolve", f"{VENDOR}/fuse=0", f"{VENDOR}/fuse=all")
            self.assertEqual([node["path"] for node in resolved["edits"]["deviceNodes"]], [FUSE])
            self.assertIn(f"path: {FUSE}", self.ok("cdi", "resolve", f"{VENDOR}/fuse=0"))
            with installed(self.spec(), "hf-e2e-2.yaml"):
                self.assertEqual(holdfast("cdi", "check").returncode, 1)
                self.refused(1, "more than one spec", "cdi", "resolve", f"{VENDOR}/fuse=0")

    def test_podman_gives_a_container_the_device_of_a_spec(self) -> None:
        for form in ("yaml", "json"):
            with self.subTest(form), installed(self.spec("-o", form), f"hf-e2e.{form}"):
                try:
                    container = self.enterContext(engines.podman("v1", gpu=False, options=("--device", f"{VENDOR}/fuse=0")))
                except Unavailable as error:
                    self.skipTest(str(error))
                inside = os.stat(f"/proc/{container.pid}/root{FUSE}")
                self.assertEqual(inside.st_rdev, os.stat(FUSE).st_rdev)


if __name__ == "__main__":
    run_suite()
