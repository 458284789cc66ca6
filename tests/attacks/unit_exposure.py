#!/usr/bin/env python3
"""An attacker exploits a flaw in holdfastd, and only the sandbox of its systemd unit is left to stop it.

The exposure that systemd-analyze computes must be at most 4.5, memory and tasks must be limited, system calls filtered,
namespaces restricted, and the network must be limited to this host.
"""

import pathlib
import re
import subprocess
import unittest

import attack_support  # parses the arguments, and adds the end-to-end tests to the module path
from support import which, run_suite

UNIT = pathlib.Path(attack_support.__file__).resolve().parents[2] / "packaging/holdfastd.service"
MOST = 4.5
LOOPBACK = {"localhost", "127.0.0.0/8", "::1/128", "::1"}


def settings(name: str) -> list[str]:
    """All values of a setting, in order."""
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.M)


class UnitExposure(unittest.TestCase):
    def setting(self, name: str) -> str:
        found = settings(name)
        self.assertTrue(found, f"the unit has no {name}")
        return " ".join(found)

    def test_the_exposure(self):
        if not which("systemd-analyze"):
            self.skipTest("needs systemd-analyze")
        command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(UNIT)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
        if not found:
            self.skipTest(f"systemd-analyze cannot do this: {done.stderr.strip()}")
        exposed = [line for line in done.stdout.splitlines() if line.startswith("✗")]
        self.assertLessEqual(float(found[1]), MOST, "\n".join(exposed))

    def test_systemd_accepts_the_unit_without_a_warning(self):
        """A setting that is misspelt limits nothing."""
        if not which("systemd-analyze"):
            self.skipTest("needs systemd-analyze")
        command = ["systemd-analyze", "verify", "--man=no", str(UNIT)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        wrong = [line for line in done.stderr.splitlines() if "holdfastd.service" in line]
        self.assertEqual([line for line in wrong if "is not executable" not in line], [])

    def test_limits(self):
        memory = re.fullmatch(r"(\d+)([KMG])", self.setting("MemoryMax"))
        self.assertIsNotNone(memory, "MemoryMax is a number of bytes")
        self.assertLessEqual(int(memory[1]) << {"K": 10, "M": 20, "G": 30}[memory[2]], 4 << 30)
        self.assertLessEqual(int(self.setting("TasksMax")), 1024)

    def test_system_calls_are_filtered(self):
        """By a list of what is allowed, or after ~ of what is denied."""
        lines = settings("SystemCallFilter")
        self.assertTrue(lines, "the unit has no SystemCallFilter")
        allowed = {name for line in lines if not line.startswith("~") for name in line.split()}
        denied = {name for line in lines if line.startswith("~") for name in line[1:].split()}
        for dangerous in ("@module", "@reboot", "@swap", "@obsolete", "@raw-io", "@cpu-emulation", "@clock"):
            self.assertTrue(dangerous in denied or (allowed and dangerous not in allowed), dangerous)
        self.assertEqual(self.setting("SystemCallArchitectures"), "native")

    def test_namespaces_and_network(self):
        text = self.setting("RestrictNamespaces")
        self.assertNotIn(text, ("no", "false", "0"))
        for kind in ("user", "net"):  # a list of what is allowed, or after ~ of what is denied
            self.assertEqual(kind in text.lstrip("~").split(), text.startswith("~"), kind)
        self.assertIn(self.setting("IPAddressDeny"), ("any", "0.0.0.0/0 ::/0"))
        self.assertLessEqual(set(self.setting("IPAddressAllow").split()), LOOPBACK)
        self.assertNotIn("AF_PACKET", self.setting("RestrictAddressFamilies"))
        self.assertEqual(self.setting("NoNewPrivileges"), "yes")


if __name__ == "__main__":
    run_suite(verbosity=1)
