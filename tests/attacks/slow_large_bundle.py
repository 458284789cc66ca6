#!/usr/bin/env python3
"""A bundle's config.json has 100 MB.

The attacker can make an engine write a very large spec, by labels or variables without an end. holdfast-runtime must
neither crash nor be slower than the runtime by orders of magnitude, and the container has its GPU or is refused.
"""

import time

from attack_support import RuntimeCase, which
from support import run_suite

SIZE = 100_000_000
LONGEST = 60  # seconds, with sanitizers on a busy host


class LargeBundle(RuntimeCase):
    def check(self, more: str) -> None:
        box = self.gpu()
        box.file.write_text(box.file.read_text()[:-1] + f", {more}}}")
        began = time.monotonic()
        done = self.attempt(box, timeout=LONGEST)
        self.assertLess(time.monotonic() - began, LONGEST)
        if done.returncode == 0:
            self.check_opens(box)
        box.delete()

    def test_one_long_text(self):
        self.check('"x": "' + "y" * SIZE + '"')

    def test_many_short_texts(self):
        self.check('"x": [' + '"yyyyyy",' * (SIZE // 90) + '"z"]')

    def test_without_a_gpu_it_is_passed_on(self):
        box = self.box().write()
        box.file.write_text(box.file.read_text()[:-1] + ', "x": "' + "y" * SIZE + '"}')
        box.runtime = which("runc")
        self.assertEqual(box.create().returncode, 0, "runc itself cannot start it")
        box.delete()
        box = self.box().write()
        box.file.write_text(box.file.read_text()[:-1] + ', "x": "' + "y" * SIZE + '"}')
        self.assertEqual(box.create(timeout=LONGEST).returncode, 0)


if __name__ == "__main__":
    run_suite()
