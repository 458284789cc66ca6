#!/usr/bin/env python3
"""nri_bench.py HOLDFAST HOLDFASTD [ROUNDS]: what NRI adds to the creation of a container, with real containerd. Needs root.

CreateContainer of containerd without a plugin and with holdfastd connected, by turns: a container of the shared pool, one with
a CPU of its own, and one whose device set is completed. Then the CPU time of an idle holdfastd with the CPU manager on.
"""

import pathlib
import statistics
import sys
import time

ROUNDS = int(sys.argv.pop(3)) if len(sys.argv) > 3 else 30
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/e2e"))

import nri_test  # noqa: E402 (takes the arguments)
from engines import IMAGE, SLEEP, cri, first_text  # noqa: E402
from nri_test import BURSTABLE, GUARANTEED, HALF, ONE_CPU  # noqa: E402

KINDS = {
    "in the shared pool": (BURSTABLE, HALF, []),
    "with a CPU of its own": (GUARANTEED, ONE_CPU, []),
    "with half a device set": (BURSTABLE, HALF, ["/dev/nvidia0", "/dev/nvidiactl"]),
}


class Bench(nri_test.WithDebian13):
    def runTest(self):
        pass

    def create(self, qos: str, resources: dict, devices: list[str]) -> float:
        """Milliseconds of CreateContainer alone."""
        pod = nri_test.Pod(self.engine, qos, resources, [])
        wanted = {1: {1: "timed"}, 2: {1: IMAGE}, 3: SLEEP, 8: [{1: node, 2: node, 3: "rw"} for node in devices], 15: {1: resources}}
        try:
            began = time.monotonic()
            first_text(cri(self.engine.socket, "CreateContainer", {1: pod.sandbox, 2: wanted, 3: pod.config}))
            return (time.monotonic() - began) * 1000
        finally:
            pod.remove()


def main() -> None:
    Bench.setUpClass()
    bench = Bench()
    try:
        bench.setUp()
        times = {(kind, plugin): [] for kind in KINDS for plugin in (False, True)}
        for plugin in (False, True) * 2:
            if plugin:
                bench.daemon.log.unlink(missing_ok=True)
                bench.start()
            for kind, arguments in KINDS.items():
                times[kind, plugin] += [bench.create(*arguments) for _ in range(ROUNDS)]
            if plugin:
                bench.daemon.kill()
        for kind in KINDS:
            without, with_ = (statistics.median(times[kind, plugin]) for plugin in (False, True))
            print(f"CreateContainer {kind:24} without NRI {without:6.1f} ms, with {with_:6.1f} ms, added {with_ - without:5.1f} ms (medians of {2 * ROUNDS})")
        bench.daemon.log.unlink(missing_ok=True)
        bench.start()
        before = bench.daemon.cpu_seconds()
        time.sleep(20)
        print(f"idle holdfastd with the CPU manager and NRI: {(bench.daemon.cpu_seconds() - before) / 20 * 100:.2f} % of a CPU")
    finally:
        bench.doCleanups()
        Bench.doClassCleanups()


main()
