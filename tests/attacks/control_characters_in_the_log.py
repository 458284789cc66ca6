#!/usr/bin/env python3
"""Control characters of an image's environment reach the terminal and the log of the engine through holdfast-runtime.

The attacker is the author of an image: escape sequences, newlines, C1 bytes and characters that turn the direction of
text around are in the variables that holdfast-runtime quotes when it refuses a container. They could change what an
administrator sees, run commands in some terminals, or forge lines of a log. None may be printed; the log stays valid
JSON in valid UTF-8.
"""

import json
import os
import pathlib
import subprocess
import tempfile

from attack_support import Box, RuntimeCase, engines
from support import run_suite

FORGED = '{"level":"info","msg":"forged"}'
PAYLOADS = {
    "escape": "\x1b[2J\x1b]0;title\x07\x1bP$q\x1b\\",
    "newline": f'"}}\n{FORGED}\n\r\x0b\x0c',
    "backspace and delete": "\b\b\b\x7f\x7f",
    "C1": "\x9b2J\x9d0;title\x9c\x85",
    "bidi": "\u202e\u202d\u2066\u2067\u2069\u200e\u200f\u061c",
}
RAW = b"\x9b2J\xc2\x9b\xff\xfe\xe2\x80\xed\xa0\x80"  # as bytes in the spec, where only UTF-8 should be
BIDI = {*"\u061c\u200e\u200f", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}


def is_dangerous(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f" or character in BIDI


class ControlCharacters(RuntimeCase):
    def check_text(self, written: bytes) -> list[str]:
        """Its lines: valid UTF-8 that ends with a newline and has no other control character."""
        text = written.decode()  # raises if it is not UTF-8
        lines = text.split("\n")
        self.assertEqual(lines.pop(), "", "the last line has no end")
        self.assertEqual([character for line in lines for character in line if is_dangerous(character)], [], repr(text))
        return lines

    def refuse(self, box: Box, *options: str) -> bytes:
        """Its standard error while it refuses the container."""
        command = box.stage.inside([box.runtime, *options, "create", "--bundle", str(box.directory), box.name])
        with tempfile.TemporaryFile() as out:
            options = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out, "timeout": engines.TIMEOUT}
            done = subprocess.run(command, check=False, **options)
            out.seek(0)
            said = out.read()
        self.assertEqual(done.returncode, 1, said)
        return said

    def check(self, box: Box) -> str:
        """Standard error and both formats of the log have one line each; the one of standard error is returned."""
        for form in ("json", "text"):
            log = pathlib.Path(f"{box.directory}/log.{form}")
            [line] = self.check_text(self.refuse(box, "--log", str(log), f"--log-format={form}"))
            [logged] = self.check_text(log.read_bytes())
            log.unlink()
            if form == "json":
                self.assertEqual(set(json.loads(logged)), {"level", "msg", "time"})
        return line

    def check_variable(self, *variables: str) -> None:
        """The payload ends the last one."""
        for name, payload in PAYLOADS.items():
            with self.subTest(name):
                box = self.box()
                box.spec["process"]["env"] += [*variables[:-1], variables[-1] + payload]
                self.check(box.write())

    def test_visible_devices(self):
        self.check_variable("NVIDIA_VISIBLE_DEVICES=99")

    def test_visible_devices_by_cdi_name(self):
        self.check_variable("NVIDIA_VISIBLE_DEVICES=site.test/data=")

    def test_requirements(self):
        self.check_variable("NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_REQUIRE_CUDA=cuda>=99,brand=")

    def test_the_name_of_a_requirement(self):
        box = self.box()
        box.spec["process"]["env"] += ["NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_REQUIRE_\x1b[2J\n\u202e=cuda>=99"]
        self.check(box.write())

    def test_bytes_that_are_not_utf8(self):
        requirement = 'NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_REQUIRE_CUDA=cuda>=99,brand=HERE'
        for variable in ("NVIDIA_VISIBLE_DEVICES=99HERE", requirement):
            with self.subTest(variable):
                box = self.box()
                box.spec["process"]["env"].append("HERE")
                text = json.dumps(box.spec).encode()
                box.file.write_bytes(text.replace(b"HERE", variable.encode().replace(b"HERE", RAW)))
                self.check(box)

    def test_a_long_value_does_not_fill_the_log(self):
        box = self.box()
        box.spec["process"]["env"].append("NVIDIA_VISIBLE_DEVICES=" + "x" * 100_000)
        self.assertLess(len(self.check(box.write())), 64_000)

    def test_what_can_be_read_is_shown(self):
        box = self.box()
        box.spec["process"]["env"].append('NVIDIA_VISIBLE_DEVICES=grün-"99"\\')
        line = self.check(box.write())
        self.assertTrue(line.startswith("holdfast-runtime: "), line)
        self.assertIn("grün", line)
        self.assertIn("99", line)

    def test_a_container_with_odd_variables_of_its_own_has_its_gpu(self):
        box = self.box()
        box.spec["process"]["env"] += [f"PROMPT={PAYLOADS['escape']}", f"TEXT={PAYLOADS['newline']}{PAYLOADS['bidi']}"]
        self.check_opens(box.ask("0").start())
        with open(f"/proc/{box.pid}/environ", "rb") as file:
            self.assertIn(os.fsencode(PAYLOADS["escape"]), file.read())


if __name__ == "__main__":
    run_suite()
