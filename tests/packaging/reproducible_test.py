#!/usr/bin/env python3
"""reproducible_test.py: the packages of the programs in build/release, made twice with another time, directory and umask."""

import hashlib
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
BUILD = ROOT / "build/release"
PROGRAMS = ("holdfast", "holdfastd", "holdfast-runtime", "holdfast-kube", "kubectl-holdfast")
COMMIT_TIME = "1700000000"


def why_not() -> str | None:
    missing = [name for name in PROGRAMS if not (BUILD / "src/programs" / name / name).exists()]
    if missing or not (BUILD / "CPackConfig.cmake").exists():
        return f"{BUILD} has no programs: tools/package makes them"
    return next((f"there is no {name}" for name in ("cpack", "rpmbuild", "dpkg-shlibdeps") if shutil.which(name) is None), None)


def packages(directory: pathlib.Path, umask: int) -> dict[str, str]:
    """Their SHA-256 sums, by name."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": COMMIT_TIME}
    done = subprocess.run([ROOT / "tools/pack", "release", directory], env=environment, umask=umask, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in directory.iterdir()}


class Packages(unittest.TestCase):
    def test_the_same_programs_give_the_same_bytes(self) -> None:
        if reason := why_not():
            self.skipTest(reason)
        subprocess.run(["cmake", str(BUILD)], capture_output=True, check=True)  # the programs may be older than what goes with them
        with tempfile.TemporaryDirectory(prefix="hf-packages-") as first, tempfile.TemporaryDirectory(prefix="hf-elsewhere-") as second:
            sums = packages(pathlib.Path(first), 0o022)
            self.assertEqual(packages(pathlib.Path(second) / "deeper", 0o077), sums)
        self.assertEqual(sorted(pathlib.Path(name).suffix for name in sums), [".deb", ".rpm"])


if __name__ == "__main__":
    run_suite(verbosity=2)
