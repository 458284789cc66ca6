"""holdfastd under test: the daemon itself, what it writes down, and programs in a container that open a device all the time."""

import contextlib
import fcntl
import functools
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

from attack import deny
from ledger import LEDGER, ledger_entry, remove_ledger  # noqa: F401 (for the suites)
from support import V1, holdfast, holdfast_json, remove_cgroup

ATTACK = str(pathlib.Path(__file__).with_name("attack.py"))
HOLDFASTD = str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 and "/" in sys.argv[1] else "holdfastd"
TICK = os.sysconf("SC_CLK_TCK")


def eventually(check, seconds: float = 20, pause: float = 0.01):
    """The first answer that counts as true, or the last one."""
    end = time.monotonic() + seconds
    while not (answer := check()) and time.monotonic() < end:
        time.sleep(pause)
    return answer


# ---- The daemon -----------------------------------------------------------------------------------------------------


def is_sanitized() -> bool:
    """A build that watches itself is several times slower."""
    return b"__asan_init" in pathlib.Path(HOLDFASTD).read_bytes()


@functools.cache  # a suite that is repeated has its turn already: another descriptor would wait for ever
def wait_for_our_turn() -> None:
    """Two of these suites at once would heal and attack each other's containers. The lock goes with this process."""
    lock = os.open("/run/lock/holdfast-e2e-guard", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)


def other_guards(but_tests: bool = False) -> list[int]:
    """Processes with a guard in them, ours or not: they would heal what these tests want to see lost. Those of tests heal only containers of their own."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if but_tests and re.search(rb"/(hf-guard-|hf-attack-|holdfast-demo-)", pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()):
                continue
            if pathlib.Path(f"/proc/{pid}/comm").read_text(errors="replace").startswith("holdfast"):
                names = [pathlib.Path(f"/proc/{pid}/task/{task}/comm").read_text(errors="replace").strip() for task in os.listdir(f"/proc/{pid}/task")]
                found += [int(pid)] if any(name.startswith("hf-survey") for name in names) else []
    return found


def policy(mode: str = "heal", limits: str = "") -> str:
    """For containers of this process (engines.unique_name); others on this machine are only observed."""
    ours = f"{{container: 'hf-e2e-*-{os.getpid()}-*', mode: {mode}}}"
    return f"guard:\n  mode: observe\n  rules: [{ours}]\n{limits and f'  limits: {limits}'}\n"


def remove_shields() -> str:
    done = subprocess.run([HOLDFASTD, "--remove-shields"], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"holdfastd --remove-shields: {done.stdout}{done.stderr}")
    return done.stdout


def whole_record(line: str) -> dict | None:
    """A daemon that is killed while it writes leaves half a line, which is skipped, as `holdfast blame` does."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


class Daemon:
    """A running holdfastd; what it says on standard error is kept in `log`."""

    def __init__(self, binary: str, directory: pathlib.Path, *options: str, prefix=lambda *command: [*command]):
        self.directory, self.journal, self.log = directory, directory / "journal", directory / "log"
        self.journal.mkdir(exist_ok=True)
        self.config = directory / "config.yaml"
        self.config.write_text(policy())
        quiet = ("--config", str(self.config))
        for option in ("--listen", "--socket"):
            quiet += () if option in options else (option, "none")
        self.command = prefix(binary, "--journal", str(self.journal), *quiet, *options)
        self.is_direct = self.command[0] == binary
        self.process: subprocess.Popen | None = None

    def start(self, containers: int = 0) -> "Daemon":
        """Until it has seen everything for the first time, with at least so many containers that are owed something."""
        for _ in range(60):
            self.launch()
            eventually(lambda: self.ready() is not None or self.process.poll() is not None, 60)
            if "holdfastd runs already" not in self.said():
                break
            time.sleep(1)  # a guard of other tests
        if self.ready() is None:
            raise RuntimeError(f"holdfastd does not come up: {self.said()}")
        if self.ready() < containers:
            raise RuntimeError(f"holdfastd guards {self.ready()} containers, not {containers}: {self.said()}")
        return self

    def launch(self) -> None:
        """Starts it without waiting."""
        with self.log.open("w") as out:
            # With the address sanitizer, what was freed would count as used.
            environment = os.environ | {"ASAN_OPTIONS": "quarantine_size_mb=1"}
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def ready(self) -> int | None:
        found = [line for line in self.said().splitlines() if "ready containers=" in line]
        return int(found[0].rpartition("=")[2].strip('"}')) if found else None

    def pid(self) -> int:
        """Of the daemon itself: behind nsenter, which forks, it is a child of what was started."""
        if self.is_direct:
            return self.process.pid
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else self.process.pid

    def tell(self, number: int) -> None:
        os.kill(self.pid(), number)

    def stop(self) -> float:
        """Seconds that it took to leave; it must leave with 0."""
        began = time.monotonic()
        self.tell(signal.SIGTERM)
        status = self.process.wait(timeout=30)
        if status != 0:
            raise RuntimeError(f"holdfastd left with {status}: {self.said()}")
        return time.monotonic() - began

    def kill(self) -> None:
        if self.process and self.process.poll() is None:
            self.tell(signal.SIGKILL)
            self.process.wait()

    def records(self, container: str = "", **wanted) -> list[dict]:
        file = self.journal / "blame.jsonl"
        lines = file.read_text().split("\n")[:-1] if file.exists() else []
        found = list(filter(None, map(whole_record, lines)))
        found = [record for record in found if not container or record.get("id") == container]
        return [record for record in found if all(record.get(key) == value for key, value in wanted.items())]

    # What it costs.

    def cpu_seconds(self) -> float:
        fields = pathlib.Path(f"/proc/{self.pid()}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid()}/fd"))

    def resident_kilobytes(self) -> int:
        lines = pathlib.Path(f"/proc/{self.pid()}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


@contextlib.contextmanager
def guarding(binary: str, *options: str, config: str = "", containers: int = 0, prefix=lambda *command: [*command], within: pathlib.Path | None = None):
    with tempfile.TemporaryDirectory(prefix="hf-guard-", dir=within) as directory:
        daemon = Daemon(binary, pathlib.Path(directory), *options, prefix=prefix)
        daemon.config.write_text(config or policy())
        try:
            yield daemon.start(containers)
        finally:
            daemon.kill()


# ---- Programs in a container ----------------------------------------------------------------------------------------

# Joins the pid namespace, then (in a child) mount namespace and cgroups: so it is a process of the container.
JOIN = r"""
import ctypes, errno, json, os, select, sys, time
init, *groups = sys.argv[1].split(",")
libc = ctypes.CDLL(None, use_errno=True)
doors = [os.open(path + "/cgroup.procs", os.O_WRONLY) for path in groups]
spaces = [os.open(f"/proc/{init}/ns/{kind}", os.O_RDONLY) for kind in ("pid", "mnt")]
root = os.open(f"/proc/{init}/root", os.O_RDONLY)
if libc.setns(spaces[0], 0) != 0: sys.exit("setns pid")
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0)
libc.prctl(1, 9)
if libc.setns(spaces[1], 0) != 0: sys.exit("setns mnt")
for door in doors: os.write(door, b"0")
os.fchdir(root); os.chroot("."); os.chdir("/")
for extra in doors + spaces + [root]: os.close(extra)
"""

OPENER = JOIN + r"""
pause, paths = float(sys.argv[2]), sys.argv[3:]
flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY
counts, last, lost_at, worst = {}, {}, {}, 0.0
print("ready", flush=True)
while True:
    for _ in range(16):
        for path in paths:
            try: os.close(os.open(path, flags)); answer = "ok"
            except OSError as error: answer = errno.errorcode[error.errno]
            last[path] = answer
            counts[answer] = counts.get(answer, 0) + 1
            if answer == "EPERM":
                lost_at.setdefault(path, time.monotonic())
            elif path in lost_at:
                worst = max(worst, time.monotonic() - lost_at.pop(path))
        if pause: time.sleep(pause)
    if select.select([0], [], [], 0)[0]:
        if not sys.stdin.readline(): os._exit(0)
        now = max([worst] + [time.monotonic() - since for since in lost_at.values()])
        print(json.dumps({"counts": counts, "worst": now, "last": last}), flush=True)
        counts, worst = {}, 0.0
"""


def joined_by(pid: int, cgroups: list[pathlib.Path]) -> str:
    return ",".join([str(pid), *map(str, cgroups)])


class Opener:
    """Opens devices in a container again and again, and counts what it gets."""

    def __init__(self, pid: int, cgroups: list[pathlib.Path], paths: list[str], pause: float):
        command = [sys.executable, "-c", OPENER, joined_by(pid, cgroups), str(pause), *paths]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("the opener cannot enter the container")
        self.worst = 0.0

    def look(self) -> dict:
        """What happened since the last look: `counts` by error, the longest outage in seconds (`worst`), the `last` answer by path."""
        self.process.stdin.write("look\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], 30)[0]:
            raise RuntimeError("the opener does not answer")
        answer = json.loads(self.process.stdout.readline())
        self.worst = max(self.worst, answer["worst"])  # of all looks
        return answer

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()  # Its child has asked to end with it.
            self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def opening(pid: int, cgroups: list[pathlib.Path], paths: list[str], pause: float = 0.001):
    opener = Opener(pid, cgroups, paths, pause)
    try:
        yield opener
    finally:
        opener.close()


def run_inside(pid: int, cgroups: list[pathlib.Path], script: str, *arguments: str) -> subprocess.Popen:
    """A Python script as a process of the container; its arguments are sys.argv[2:]."""
    command = [sys.executable, "-c", JOIN + script, joined_by(pid, cgroups), *arguments]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# ---- Rules, compared by what they mean ------------------------------------------------------------------------------

TOP = 2**32 - 1
ACCESSES = ("r", "w", "rw", "m")


def rule(text: str) -> dict:
    """ "c 195:0 rw" as `holdfast rules -o json` has it."""
    kind, numbers, access = text.split()
    major, minor = (None if number == "*" else int(number) for number in numbers.split(":"))
    return {"type": kind, "major": major, "minor": minor, "access": access}


def owed_rules(nodes: dict[str, tuple[int, int]]) -> list[dict]:
    """What is owed to a container that was given these nodes: with a GPU also its helpers, if their driver has a major now."""
    owed = [rule(f"c {major}:{minor} rw") for major, minor in nodes.values()]
    majors = [line.split()[0] for line in pathlib.Path("/proc/devices").read_text().splitlines() if line.endswith(" nvidia-uvm")]
    return owed + [rule(f"c {major}:{minor} rw") for major in majors[:1] for minor in (0, 1)]


def span(value) -> tuple[int, int]:
    return (0, TOP) if value is None else tuple(value) if isinstance(value, list) else (value, value)


def allows(rules: list[dict], kind: str, major: int, minor: int, access: str) -> bool:
    for one in rules:
        (first, last), (low, high) = span(one["major"]), span(one["minor"])
        fits = one["type"] in (kind, "a") and first <= major <= last and low <= minor <= high
        if fits and (set(access) == set(one["access"]) if one.get("exactly") else set(access) <= set(one["access"])):
            return True
    return False


def corners(rules: list[dict], key: str) -> list[int]:
    """A number out of every part in which no rule begins or ends."""
    edges = {0}
    for one in rules:
        first, last = span(one[key])
        edges |= {first, min(last + 1, TOP)}
    return sorted(edges)


def difference(have: list[dict], want: list[dict]) -> list[str]:
    """Requests that one lets through and the other does not; none where both mean the same."""
    found = []
    for kind in "bc":
        for major in corners(have + want, "major"):
            for minor in corners([one for one in have + want if span(one["major"])[0] <= major <= span(one["major"])[1]], "minor"):
                for access in ACCESSES:
                    has, wants = allows(have, kind, major, minor, access), allows(want, kind, major, minor, access)
                    if has != wants:
                        found.append(f"{'more' if has else 'less'}: {kind} {major}:{minor} {access}")
    return found


def rules_of(target: str) -> list[dict]:
    report = holdfast_json("rules", target)
    if not report["effective"]["exact"]:
        raise RuntimeError(f"rules of {target}: {report['effective']['why']}")
    return report["effective"]["rules"]


# ---- Containers without a runtime -----------------------------------------------------------------------------------


class Plain:
    """A process that is the first of its pid namespace, alone in a cgroup of one hierarchy, with nodes in a /dev of its own."""

    def __init__(self, parent: pathlib.Path, name: str, nodes: dict[str, tuple[int, int]]):
        self.id, self.cgroup, self.nodes = name, parent / name, nodes
        self.is_v1 = self.cgroup.is_relative_to(V1)
        self.left: list[dict] = []
        self.cgroup.mkdir()
        lines = ["mount -t tmpfs -o mode=755 none /dev"]
        lines += [f"mknod -m 666 {path} c {major} {minor}" for path, (major, minor) in nodes.items()]
        lines += [f'echo 0 >"{self.cgroup}/cgroup.procs"', "echo ready", "exec sleep infinity"]
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", "--mount", "sh", "-ec", "\n".join(lines)]
        self.holder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if (said := self.holder.stdout.readline()) != b"ready\n":
            self.close()
            remove_cgroup(self.cgroup)
            raise RuntimeError(f"a container without a runtime cannot be had here: {said.decode()}")
        self.pid = int(pathlib.Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children").read_text().split()[0])

    def cgroups(self) -> list[pathlib.Path]:
        return [self.cgroup]

    def restrict(self) -> None:
        """To its nodes and what has major 1; what `attack` leaves of that is `left`."""
        self.deny_all()
        owed = [f"c {major}:{minor} rw" for major, minor in self.nodes.values()]
        done = holdfast("grant", f"pid:{self.pid}", *owed)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    def deny_all(self) -> None:
        """But what has major 1."""
        self.left = [rule("c 1:* rwm")] if self.is_v1 else [rule("c 1:* rwm"), rule("b 1:* rwm")]
        if self.is_v1:
            (self.cgroup / "devices.deny").write_text("a")
            (self.cgroup / "devices.allow").write_text("c 1:* rwm")
            return
        group = os.open(self.cgroup, os.O_RDONLY | os.O_DIRECTORY)
        deny(group)
        os.close(group)

    def attack(self, mark: int = 0) -> subprocess.CompletedProcess:
        """Takes all its nodes away; on v2 by a program that differs with the mark."""
        arguments = ["replace", str(self.cgroup), str(mark)]
        if self.is_v1:
            arguments = ["v1", str(self.cgroup), *(f"c {major}:{minor} rw" for major, minor in self.nodes.values())]
        return subprocess.run([sys.executable, ATTACK, *arguments], capture_output=True, text=True, timeout=60, check=False)

    def close(self) -> None:
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
