#!/usr/bin/env python3
"""Held: a config file that is a bomb: aliases that multiply, endless nesting, a hundred megabytes, or no regular file.

An administrator's tool writes what a user gave it to /etc/holdfast, and holdfastd reads it. Each must be refused with
one line and exit code 2 within a bounded time and memory, without running out of stack; a sane file is accepted.
"""

import os
import pathlib
import signal
import subprocess
import tempfile
import threading

import attack_support  # parses the arguments, and adds the end-to-end tests to the module path
from attack_support import HOLDFASTD
from support import Case, run_suite

SECONDS = 60  # A bomb that works takes for ever.
MOST = 1_000_000  # kilobytes: a sanitized build needs several times as much as others
LAUGHS = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 40))
MERGES = "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 40))
MEGABYTE = 1 << 20


def bombs() -> dict[str, bytes]:
    deep = 200_000
    return {name: text if isinstance(text, bytes) else text.encode() for name, text in {
        "aliases that multiply": "a0: &a0 [lol]\n" + LAUGHS,
        "aliases that multiply, as rules": "a0: &a0 {container: x, mode: heal}\n" + LAUGHS + "guard: {rules: *a39}\n",
        "merge keys that multiply": "a0: &a0 {mode: heal}\n" + MERGES + "guard: *a39\n",
        "an alias of itself": "guard: &g {rules: [*g, *g]}\n",
        "an alias of itself as a key": "guard: &g {? *g : *g}\n",
        "open brackets": "guard: " + "[" * deep,
        "nested lists": "guard: " + "[" * deep + "]" * deep,
        "nested maps": "guard: " + "{a: " * deep + "}" * deep,
        "nested dashes": "guard:\n  " + "- " * deep + "x\n",
        "nested indentation": "".join(" " * depth + "a:\n" for depth in range(2000)),
        "nested keys": "? " * deep + "x\n",
        "nested tags": "guard: " + "!<tag:a> " * deep + "x\n",
        "a hundred megabytes": b"#" * (100 * MEGABYTE),
        "a long scalar": "guard: {mode: " + "x" * (8 * MEGABYTE) + "}\n",
        "a long key": "k" * (8 * MEGABYTE) + ": 1\n",
        "a list of millions": "guard: {rules: [" + "a," * (4 * MEGABYTE) + "]}\n",
        "a million keys": "".join(f"k{i}: 1\n" for i in range(300_000)),
        "a key with line breaks and escape sequences": '"a\\nb\\x1b[31m\\x9b": 1\n',
        "broken UTF-8": b"guard: {mode: \xff\xfe\x1b[31m}\n",
        "zeros": b"\0" * MEGABYTE,
    }.items()}  # fmt: skip


class YamlBombs(Case):
    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="hf-attack-")))
        self.file = self.directory / "config.yaml"

    def read(self, file: pathlib.Path, *options: str) -> subprocess.CompletedProcess:
        """The output of holdfastd for it, within a bounded time and memory."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as wrong:
            command = [HOLDFASTD, *options, "--config", str(file)]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=wrong)
            timer = threading.Timer(SECONDS, process.kill)
            timer.start()
            _, status, used = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertNotEqual(process.returncode, -signal.SIGKILL, "it took too long")
            self.assertLess(used.ru_maxrss, MOST, "kilobytes")
            texts = [file.seek(0) or file.read().decode(errors="replace") for file in (out, wrong)]
            return subprocess.CompletedProcess(process.args, process.returncode, *texts)

    def check_refused(self, file: pathlib.Path, *options: str) -> None:
        done = self.read(file, *options)
        self.assertEqual(done.returncode, 2, done.stderr[-2000:])
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("holdfastd: "), done.stderr[:300])
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr[:2000])
        self.assertLess(len(done.stderr), 2000)
        self.assertNotRegex(done.stderr.rstrip("\n"), r"[\x00-\x1f\x7f-\x9f]")

    def test_bombs(self):
        for name, text in bombs().items():
            with self.subTest(name):
                self.file.write_bytes(text)
                self.check_refused(self.file, "--check-config")

    def test_files_that_are_not_regular_or_not_of_root(self):
        fifo, link, users = (self.directory / name for name in ("fifo", "link", "users"))
        os.mkfifo(fifo, 0o600)
        link.symlink_to("/dev/zero")
        users.write_text("guard: {mode: heal}\n")
        os.chown(users, attack_support.NOBODY, attack_support.NOBODY)
        devices = (pathlib.Path("/dev/zero"), pathlib.Path("/proc/kmsg"))
        for file in (fifo, link, users, self.directory, *devices, self.directory / "none"):
            with self.subTest(file.name):
                self.check_refused(file, "--check-config")

    def test_a_daemon_with_such_a_file_does_not_start(self):
        self.file.write_text("a0: &a0 [lol]\n" + LAUGHS)
        self.check_refused(self.file)

    def test_a_sane_file_is_accepted(self):
        rules = "".join(f"  - {{container: 'c-{i}-*', mode: observe}}\n" for i in range(1000))
        self.file.write_text(f"guard:\n  mode: heal\n  rules:\n{rules}")
        done = self.read(self.file, "--check-config")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1000 rules", done.stdout)


if __name__ == "__main__":
    run_suite(verbosity=1)
