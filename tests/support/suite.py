"""How a suite of tests ends: with 77 (skipped, for ctest) where every test was skipped, and with one line that names what was skipped and why.

HOLDFAST_TRIES: how often a test may fail before its suite fails (1 unless given). ./test sets 2, because suites that share a
busy machine disturb each other's clocks; a test that passed only when it was repeated is named in a line of its own.
"""

import collections
import os
import re
import sys
import unittest

SKIPPED = 77
REPEATED = "passed when repeated: "


def skipped_line(result: unittest.TestResult) -> str:
    names = collections.defaultdict(list)
    for test, reason in result.skipped:
        names[reason].append(test.id().removeprefix("__main__."))
    return "skipped: " + "; ".join(f"{', '.join(which)} ({reason})" for reason, which in names.items())


def count_run(result: unittest.TestResult) -> int:
    """Tests of which at least a part ran. A class or a module that is skipped as a whole, and a part of a test (it has a test_case), do not count as skipped tests."""
    skipped = [test for test, _ in result.skipped if isinstance(test, unittest.TestCase) and not hasattr(test, "test_case")]
    return result.testsRun - len(skipped)


def failed_names(result: unittest.TestResult) -> list[str]:
    """Tests, each once, also where parts of it failed; a class or a module where its own set-up failed."""
    names = {}
    for test in [test for test, _ in result.failures + result.errors] + result.unexpectedSuccesses:
        whole = getattr(test, "test_case", test).id()  # or "setUpClass (__main__.Name)"
        names[match[1] if (match := re.search(r"\((.+)\)$", whole)) else whole] = None
    return list(names)


def repeat(names: list[str], **options) -> bool:
    print(f"\nonce more: {', '.join(names)}", file=sys.stderr, flush=True)
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    if not unittest.TextTestRunner(**options).run(suite).wasSuccessful():
        return False
    print(REPEATED + ", ".join(name.removeprefix("__main__.") for name in names), file=sys.stderr)
    return True


def run_suite(**options) -> None:
    """unittest.main() for ctest."""
    result = unittest.main(exit=False, **options).result
    passed = result.wasSuccessful()
    for _ in range(1, int(os.environ.get("HOLDFAST_TRIES", "1"))):
        passed = passed or repeat(failed_names(result), **options)
    if result.skipped:
        print(skipped_line(result), file=sys.stderr)
    if not passed:
        sys.exit(1)
    sys.exit(SKIPPED if result.skipped and count_run(result) == 0 else 0)
