"""How a suite of tests ends: with 77 (skipped, for ctest) where every test was skipped, and with one line that names what was skipped and why."""

import collections
import sys
import unittest

SKIPPED = 77


def skipped_line(result: unittest.TestResult) -> str:
    names = collections.defaultdict(list)
    for test, reason in result.skipped:
        names[reason].append(test.id().removeprefix("__main__."))
    return "skipped: " + "; ".join(f"{', '.join(which)} ({reason})" for reason, which in names.items())


def count_run(result: unittest.TestResult) -> int:
    """Tests of which at least a part ran. A class or a module that is skipped as a whole, and a part of a test (it has a test_case), do not count as skipped tests."""
    skipped = [test for test, _ in result.skipped if isinstance(test, unittest.TestCase) and not hasattr(test, "test_case")]
    return result.testsRun - len(skipped)


def run_suite(**options) -> None:
    """unittest.main() for ctest."""
    result = unittest.main(exit=False, **options).result
    if result.skipped:
        print(skipped_line(result), file=sys.stderr)
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.skipped and count_run(result) == 0 else 0)
