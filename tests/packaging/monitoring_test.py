#!/usr/bin/env python3
"""monitoring_test.py HOLDFAST: alerts, dashboard and node-problem-detector's config use what the programs really serve."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

sys.path += [str(pathlib.Path(__file__).parents[1] / directory) for directory in ("support", "e2e")]

from engines import Unavailable, program_of_prometheus  # noqa: E402
from support import HOLDFAST, run_suite  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALERTS = ROOT / "packaging/monitoring/alerts.yaml"
ALERT_TESTS = pathlib.Path(__file__).with_name("alerts_test.yaml")
DASHBOARD = ROOT / "packaging/monitoring/dashboard.json"
DETECTOR = ROOT / "packaging/node-problem-detector/holdfast.json"


def served() -> set[str]:
    """The series of /metrics, as src/render/metrics.cpp names them."""
    source = (ROOT / "src/render/metrics.cpp").read_text()
    names = {f"holdfast_{name}" for name in re.findall(r'page\.(?:begin|gauge)\(\s*"(\w+)"', source)}
    for name in re.findall(r'page\.histogram\(\s*"(\w+)"', source):
        names |= {f"holdfast_{name}_{suffix}" for suffix in ("bucket", "sum", "count")}
    return names


def named_in(text: str) -> set[str]:
    return set(re.findall(r"\bholdfast_\w+", text))


def rules() -> list[dict]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def queries() -> list[str]:
    return [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]]


class Promtool(unittest.TestCase):
    def find_promtool(self) -> str:
        try:
            return program_of_prometheus("promtool", HOLDFAST.parent / "packages")
        except Unavailable as error:
            self.skipTest(f"needs promtool (package prometheus): {error}")


class Alerts(Promtool):
    def test_each_is_about_a_metric_that_is_served(self) -> None:
        self.assertLessEqual(named_in(" ".join(rule["expr"] for rule in rules())), served())

    def test_each_is_tested_silent_and_firing(self) -> None:
        cases = [case for test in yaml.safe_load(ALERT_TESTS.read_text())["tests"] for case in test["alert_rule_test"]]
        for rule in rules():
            fires = {bool(case.get("exp_alerts")) for case in cases if case["alertname"] == rule["alert"]}
            self.assertEqual(fires, {True, False}, rule["alert"])

    def test_pass_the_tests_of_promtool(self) -> None:
        promtool = self.find_promtool()
        for command in ([promtool, "check", "rules", str(ALERTS)], [promtool, "test", "rules", str(ALERT_TESTS)]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Dashboard(Promtool):
    def test_shows_every_metric_that_is_served_and_no_other(self) -> None:
        shown = named_in(" ".join(queries()))
        self.assertLessEqual(shown, served())
        parts = {name for name in served() if name.endswith(("_sum", "_count"))}
        self.assertEqual(served() - parts - shown - {"holdfast_resource_devices"}, set())

    def test_has_panels_that_do_not_overlap(self) -> None:
        taken: dict[tuple[int, int], str] = {}
        for panel in json.loads(DASHBOARD.read_text())["panels"]:
            at = panel["gridPos"]
            for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
                self.assertLess(cell[0], 24, panel["title"])
                self.assertNotIn(cell, taken, panel["title"])
                taken[cell] = panel["title"]

    def test_has_queries_that_prometheus_parses(self) -> None:
        promtool = self.find_promtool()
        expressions = [query.replace("$__rate_interval", "1m") for query in queries()]
        groups = {"groups": [{"name": "dashboard", "rules": [{"record": f"r{i}", "expr": text} for i, text in enumerate(expressions)]}]}
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(yaml.safe_dump(groups))
            file.flush()
            done = subprocess.run([promtool, "check", "rules", file.name], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Detector(unittest.TestCase):
    """node-problem-detector: exit 0 is fine, 1 a problem, anything else unknown; the output becomes the condition's message."""

    def test_runs_a_command_that_keeps_to_its_protocol(self) -> None:
        config = json.loads(DETECTOR.read_text())
        rule = config["rules"][0]
        self.assertEqual(rule["condition"], config["conditions"][0]["type"])
        done = subprocess.run([HOLDFAST, *rule["args"]], capture_output=True, text=True, timeout=60, check=False)
        self.assertIn(done.returncode, (0, 1, 2), done.stderr)
        self.assertLessEqual(done.stdout.count("\n"), 1, done.stdout)
        self.assertEqual(bool(done.stdout), done.returncode == 1 or done.returncode == 2 and not done.stderr, done.stdout + done.stderr)

    def test_is_not_cut_off_before_the_verdict(self) -> None:
        self.assertGreaterEqual(json.loads(DETECTOR.read_text())["pluginConfig"]["max_output_length"], 200)


if __name__ == "__main__":
    run_suite(verbosity=2)
