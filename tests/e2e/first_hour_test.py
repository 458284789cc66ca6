#!/usr/bin/env python3
"""The first hour of a new user: every command of README.md, of the guides, INSTALL.md and MIGRATE.md, typed as written, in a machine of its own.

The documents are read: a line of theirs that is not claimed here fails the test. So does an output that they show and the programs do not print. The lines of the
documents about clusters are claimed too, with the tests that have one. A command that any document speaks of must exist.
"""

import contextlib
import dataclasses
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
import unittest

from support import HOLDFAST, Case, run_suite, which, why_not  # removes its argument from the command line first
from guarded import ATTACK, HOLDFASTD, eventually, wait_for_our_turn

RUNTIME, KUBE = [str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 and "/" in sys.argv[1] else "" for _ in range(2)]

import engines
import gpu_stage
import private_machine
from documents import Item, read_document
from private_machine import HOME, Machine
from systemd_host import why_no_systemd

ROOT = pathlib.Path(__file__).resolve().parents[2]
README, INSTALL, MIGRATE = "README.md", "docs/INSTALL.md", "docs/MIGRATE.md"
SEE, FIND, GUARD, START, PLAN, CORES, OFFER = (
    f"docs/guides/{name}.md"
    for name in (
        "see-what-a-container-may-open", "find-out-who-took-a-gpu", "guard-a-host", "start-gpu-containers",
        "plan-cores", "give-containers-cores", "offer-devices-to-kubernetes",
    )
)  # fmt: skip
TIMEOUT = 60
ENDING: list[bool] = []
IMAGE = engines.IMAGE
HAS_MANY_CPUS = os.cpu_count() > 64
PARTS = ("Install", "1. Ask the doctor", "2. Give the device back", "3. Read who did it", "4. Prevent the next loss", "Uninstall")

CHECK, REMOVAL, REST = ("Check the installation",), ("Before you remove it",), ("What the scripts of the packages do", "Packages", "From source")

# In this order. A user who reads about `blame` follows its link and installs the guard first; who uninstalls it does so in the end.
ON_V2 = [
    (README, None), (SEE, None), (FIND, PARTS[1:3]), (GUARD, ("Install",)), (FIND, PARTS[3:5]), (GUARD, None),
    (START, None), (PLAN, None), (OFFER, None), (MIGRATE, None), (INSTALL, CHECK), (GUARD, ("Uninstall",)), (INSTALL, REMOVAL), (INSTALL, REST),
]  # fmt: skip


# ---- What is done with each line ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Claim:
    """A line that is typed."""

    exit: tuple[int, ...] = (0,)
    says: tuple[str, ...] = ()  # expressions that its output has
    typed: str = ""  # instead of what the document has: placeholders, and what depends on the machine
    before: str = ""  # a command, or a method of Story with an argument after a colon
    until: str = ""  # it goes on until it is stopped; this is waited for. Every 0.1 s `again` is run meanwhile.
    again: str = ""
    after: str = ""


@dataclasses.dataclass(frozen=True)
class NotHere:
    """A line that is not typed, and why."""

    why: str


BUILDS = NotHere("builds the project, which takes minutes: tests/releases/run_test.sh runs it in clean root file systems")
PACKAGED = NotHere("the machine has no package: tests/releases/package_test.sh installs and removes it")
NODES = ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
LEAVES_DEVICES_OUT = bool(re.search(r"version 1\.1\.[3-6]\b", subprocess.run([which("runc") or "false", "--version"], capture_output=True, text=True).stdout))
GPU = " ".join(f"--device /dev/{node}" for node in NODES)
SHOWS_NODES = tuple(rf"(?m)^{node}$" for node in NODES)
LISTS_DEV = f"{IMAGE} busybox ls /dev"
STOPPED = (0, 130, -signal.SIGINT)  # by Ctrl-C
LINES_IN_DOUBT = (0, 1)  # NVIDIA's library is a stand-in without functions, which `devices` reports as a fault

INSTALLS = " && ".join(
    [f"install -m 755 build/release/src/programs/{name}/{name} /usr/{place}/" for name, place in (("holdfast", "bin"), ("holdfastd", "sbin"), ("holdfast-runtime", "bin"), ("holdfast-kube", "sbin"))]
    + ["install -D -m 644 packaging/config.yaml /etc/holdfast/config.yaml", "install -m 644 packaging/*.service /etc/systemd/system/"]
)

CLAIMS: dict[str | tuple[str, str], Claim | NotHere] = {
    "./run": BUILDS,
    "./test": BUILDS,
    # README
    "tools/package": BUILDS,
    # Its files, without the start of the guard: the examples after it show a host without one.
    "apt install ./build/release/packages/holdfast_*.deb": Claim(typed=INSTALLS),
    "holdfast ps": Claim((0, 1), ("^CONTAINER +POD +ENGINE +DEVICES +STATE", r"\ntrain .*nvidia:0", r"\nweb .*fuse +ok")),
    "holdfast doctor": Claim((0, 1), (r"\d containers?: ",)),
    (README, "holdfast doctor"): Claim((1,), (r"HF-20[12] warning train: will lose .*/dev/nvidia0",), after="cure:HF-304"),
    (README, "# holdfast doctor"): Claim((1,), before="systemctl daemon-reload"),
    "holdfast explain web": Claim((0,), (r"^web \([0-9a-f]{12}\): ok", r"/dev/fuse c 10:229 rwm: ok", "Verdict: ok")),
    "holdfast devices": Claim(LINES_IN_DOUBT, ("(?m)^DEVICE +MODEL", r"(?m)^/dev/nvidia0 +nvidia +unit +c 195:0 +c 195:0 +train")),
    # See what a container may open
    "holdfast ps -o wide": Claim((0, 1), (r"^CONTAINER .* ID +PID +RUNTIME +DRIVER +UNIT +CGROUP +SHIELD +FINDINGS", "HF-101|SHIELD")),
    "holdfast ps --watch --interval 5": Claim((0, 1), until=r"\ntrain .*nvidia:0"),
    "holdfast explain web /dev/nvidia0": Claim((2,), ("web is owed no such device; it is owed fuse",)),
    "holdfast rules web": Claim((0,), (r"^web: \d+ rules, \d gates", r"c 10:229 rwm", r"effective")),
    "holdfast rules": Claim((0,), (r"^\d+ gates on this host \(v2\)", "docker-")),
    "V2=$(awk '$(NF-2) == \"cgroup2\" { print $5; exit }' /proc/self/mountinfo)": Claim(),
    'mkdir $V2/tour && sh -c "echo 0 > $V2/tour/cgroup.procs; exec sleep 600" & sleep 1; PID=$(cat $V2/tour/cgroup.procs)': Claim(),
    "holdfast revoke pid:$PID 'c 195:* rwm'": Claim(),
    "holdfast rules pid:$PID --ask c:195:0:rw": Claim((1,)),
    "holdfast rules pid:$PID": Claim((0,), (r"gate v2:\S+/tour program:\d+ \(holdfast\)", "effective")),
    "holdfast grant pid:$PID 'c 195:0 rw' 'c 195:255 rw' --dry-run": Claim((1,), ("would",)),
    "holdfast grant pid:$PID 'c 195:0 rw' 'c 195:255 rw'": Claim(),
    "holdfast rules pid:$PID --ask c:195:0:rw --ask c:195:1:rw": Claim((1,), (r"^allow\ndeny v2:\S+/tour program:\d+ \(holdfast\)$",)),
    "holdfast rules diff pid:$PID pid:1": Claim((1,), ("c 195",)),
    "holdfast rules pid:$PID -o json": Claim((0,), ("json",)),
    "kill $PID; sleep 1; rmdir $V2/tour": Claim(),
    "holdfast grant web 'c 195:0 rw'": Claim((0,), ("^granted c 195:0 rw to web",), after="holdfast revoke web 'c 195:0 rw'"),
    # Find out who took a GPU
    (FIND, "holdfast doctor"): Claim((1,), ("HF-101 critical train",)),
    "holdfast doctor web": Claim((0,), (r"^no problem found \(1 container: 1 ok\)",)),
    "holdfast doctor --all": Claim((1,), ("HF-101 critical train",)),
    "holdfast doctor --deep": Claim((1,), ("HF-101 critical train",)),
    "holdfast doctor --explain HF-201": Claim((0,), ("^HF-201 ", "systemctl set-property")),
    (FIND, "# holdfast doctor"): Claim((1,)),
    "holdfast heal web": Claim((0,), ("^web: has everything it is owed",)),
    "holdfast heal --all": Claim((0,), (r"(?m)^train: healed", r"(?m)^web: has everything")),
    "holdfast heal web --dry-run": Claim((1,), ("^web: would be healed",), before="lose:web"),
    "holdfast blame web --since 1h": Claim((0, 1), (r"web \(docker\): ", "python3")),
    "holdfast blame --losses": Claim((0, 1)),
    "holdfast blame --journal /var/lib/holdfast -o json": Claim((0, 1), ("json",)),
    "holdfast watch": Claim((0,), until=r"web \(docker\): ", again="lose:web"),
    "holdfast watch web --for 10m -o json": Claim((0,), until='"container":"web"', again="lose:web"),
    "systemctl set-property --runtime …": NotHere("the command of a finding: the cures of HF-202 and HF-101 are compared with the document"),
    # Guard a host
    "holdfastd --check-config; holdfast doctor; holdfast watch": Claim(
        before="package_starts_the_guard", exit=(0,), says=("(?s)config is fine.*mode heal, shield auto.*guard: holdfastd .*detects changes by",), until=r"web \(docker\): ", again="lose:web"
    ),
    "systemctl reload holdfastd": Claim(),
    "systemctl disable --now holdfastd": Claim(),
    "holdfastd --remove-shields": Claim((0,), ("shield",)),
    # Start GPU containers
    "holdfast setup docker --dry-run": Claim((1,), (r"would be a runtime", r'\+ +"path": "/usr/bin/holdfast-runtime"', "would: write /etc/docker/daemon.json")),
    "holdfast setup docker && systemctl reload docker": Claim((0,), ("holdfast is a runtime now", "did: write /etc/docker/daemon.json")),
    "docker run --runtime holdfast -e NVIDIA_VISIBLE_DEVICES=all …": Claim(
        (0,), SHOWS_NODES, typed=f"docker run --runtime holdfast -e NVIDIA_VISIBLE_DEVICES=all {LISTS_DEV}"
    ),
    "docker run --runtime holdfast --gpus all …": Claim(
        (0,), SHOWS_NODES, typed=f"docker run --runtime holdfast --gpus all {LISTS_DEV}", before="systemctl restart docker", after="docker start train web"
    ),
    "podman --runtime /usr/bin/holdfast-runtime run -e NVIDIA_VISIBLE_DEVICES=all …": Claim(
        (0,), SHOWS_NODES, typed=f"podman --runtime /usr/bin/holdfast-runtime run -e NVIDIA_VISIBLE_DEVICES=all {LISTS_DEV}", before="podman load -qi /etc/docker/image.tar"
    ),
    "holdfast setup containerd": Claim((0,), ("kind: RuntimeClass", "handler: holdfast")),
    "holdfast setup node": Claim((0,), ("/etc/udev/rules.d/71-holdfast.rules",)),
    "holdfast setup node --load-modules --dry-run": Claim((0,), ("nothing to do",)),
    "holdfast cdi generate --file /etc/cdi/nvidia.yaml": Claim(),
    "holdfast cdi generate --class rdma": Claim((0,), ("holdfast.dev/rdma", "/dev/infiniband/uverbs0"), before="mkdir /dev/infiniband && mknod /dev/infiniband/uverbs0 c 231 192", after="rm -r /dev/infiniband"),
    "holdfast cdi check": Claim((0,), ("^nothing is wrong",)),
    "holdfast cdi list": Claim((0,), (r"(?m)^nvidia.com/gpu=0 +ok", r"(?m)^nvidia.com/gpu=all +ok")),
    "holdfast cdi resolve nvidia.com/gpu=0": Claim((0,), ("path: /dev/nvidia0", "/usr/bin/holdfast-runtime")),
    # Plan cores
    "holdfast cpu topology": Claim((0,), (r"^\d+ sockets?, \d+ NUMA nodes?",)),
    "holdfast cpu plan --cpus 16 --topology dgx-a100 --near-device /dev/nvidia0": Claim((0,), (r"^48-55,176-183\n",)),
    "holdfast cpu simulate scenario.json -o json": Claim((0,), ("json",), before="scenario"),
    "holdfast cpu state": Claim((0,), before="kubelet_state"),
    "holdfast cpu state --rebuild --reserved 0,64 --dry-run": Claim(
        (1,), before="torn_kubelet_state", typed="" if HAS_MANY_CPUS else "holdfast cpu state --rebuild --reserved 0 --dry-run"
    ),
    "# holdfast cpu plan --cpus 40 --topology dgx-a100 --near-device /dev/nvidia0": Claim(),
    # Offer devices to Kubernetes
    "systemctl enable --now holdfast-kube": Claim(),
    "holdfast-kube --once": Claim((0,), ("json", '"resource": "nvidia.com/gpu"', '"health": "Healthy"')),
    # Come from NVIDIA's tools
    r"holdfast cdi generate --file FILE --output yaml\|json": Claim(typed="holdfast cdi generate --file /tmp/spec.json --output json && python3 -m json.tool /tmp/spec.json", says=("nvidia.com/gpu",)),
    "holdfast-kube --check-config": Claim((0,), ("config is fine", "offers nvidia.com/gpu")),
    (MIGRATE, "holdfast setup docker --dry-run"): Claim((1,), ("would: write /etc/docker/daemon.json",), before="holdfast setup docker --undo && systemctl restart docker"),
    "docker run --rm --runtime holdfast -e NVIDIA_VISIBLE_DEVICES=all IMAGE nvidia-smi": Claim(
        (0,), SHOWS_NODES, typed=f"docker run --rm --runtime holdfast -e NVIDIA_VISIBLE_DEVICES=all {LISTS_DEV}"
    ),
    "holdfast setup docker --default && systemctl reload docker": Claim((0,), ("holdfast is the default runtime now",), after="docker info | grep 'Default Runtime: holdfast'"),
    "holdfast setup docker && systemctl restart docker": Claim((0,), after="docker info | grep 'Default Runtime: runc' && docker start train web"),
    "kubectl describe node NODE": NotHere("there is no cluster: e2e.dra_kubelet has a real one"),
    "systemctl disable --now holdfast-kube": Claim(),
    "rm -f /run/cdi/holdfast-*.yaml": Claim(before="ls /run/cdi/holdfast-nvidia.yaml", after="test ! -e /run/cdi/holdfast-nvidia.yaml"),
    "holdfast setup docker --undo && systemctl restart docker": Claim((0,), ("holdfast is no runtime any more",), after="! docker info | grep holdfast"),
    "nvidia-ctk runtime configure --runtime=docker": NotHere("NVIDIA's toolkit is not here"),
    "rm /etc/cdi/nvidia.yaml && nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml": NotHere("NVIDIA's toolkit is not here"),
    # Install
    "tools/package arm64": BUILDS,
    "apt install ./holdfast_0.1.0-1_amd64.deb": PACKAGED,
    "rpm --install holdfast-0.1.0-1.x86_64.rpm": PACKAGED,
    "rm -rf /etc/holdfast /var/lib/holdfast /run/holdfast /var/lib/kubelet/plugins/gpu.holdfast.dev /etc/kubernetes/node-feature-discovery/features.d/holdfast": Claim(
        before="ls /etc/holdfast /var/lib/holdfast", after="test ! -e /etc/holdfast -a ! -e /var/lib/holdfast"
    ),
    "rm -f /var/lib/kubelet/device-plugins/holdfast-*.sock /var/lib/kubelet/plugins_registry/{holdfast-*,gpu.holdfast.dev-reg}.sock": Claim(),
    "rm -f /var/log/holdfast-runtime.log": Claim(),
    "rm -f /etc/docker/daemon.json.holdfast-backup /etc/{containerd/config.toml,crio/crio.conf.d/99-holdfast.conf,containers/containers.conf.d/99-holdfast.conf}.holdfast-backup": Claim(),
    "holdfast --version": Claim((0,), (r"^holdfast \d+\.\d+",)),
    "holdfastd --check-config": Claim((0,), ("^config is fine", "read /etc/holdfast/config.yaml", "mode heal, shield auto")),
    "systemctl status holdfastd": Claim((0,), (r"Active: active \(running\)",)),
    (INSTALL, "holdfast doctor"): Claim((0, 1), ("guard: holdfastd .*detects changes by",)),
    # Shortened, and without a search for an old runc.
    "systemctl stop holdfastd; holdfast demo; systemctl start holdfastd": Claim(
        (0,), (r"(?m)^held: \d+ attacks, all repaired",), typed="systemctl stop holdfastd; holdfast demo --offline --seconds 2; systemctl start holdfastd"
    ),
    "grep -ls holdfast-runtime /run/{containerd,docker/containerd/daemon,k3s/containerd}/io.containerd.runtime.v2.task/*/*/{options.json,runtime}": Claim(
        (0, 2), ("/io.containerd.runtime.v2.task/moby/",), before=f"holdfast setup docker && systemctl restart docker && docker run -d --name kept --runtime holdfast {IMAGE}", after="docker rm -f kept"
    ),
    "pgrep -a conmon | grep holdfast-runtime": Claim((1,)),
    "apt remove holdfast": PACKAGED,
    "tools/build release holdfast holdfastd holdfast-runtime holdfast-kube kubectl-holdfast": BUILDS,
    "cmake --install build/release": BUILDS,
    "systemctl start holdfastd": Claim(),
    "systemctl enable holdfastd": Claim((0,), after="systemctl is-active holdfastd"),
}

# Give containers cores, on v1, where this machine's cpusets are.
FEW = "4" if os.cpu_count() > 5 else "1"
CORE_CLAIMS: dict[str, Claim | NotHere] = {
    "systemctl reload holdfastd": Claim(),
    "holdfast cpu status": Claim((0,), ("^0 containers have CPUs of their own", r"(?m)^train +shared")),
    "docker run --label holdfast.cpus=4 …": Claim(typed=f"docker run --label holdfast.cpus={FEW} -d --name job {IMAGE}", after="alone:docker rm -f job"),
    "podman run --annotation holdfast.cpus=4 …": Claim(
        typed=f"podman run --annotation holdfast.cpus={FEW} -d --name job {IMAGE}", before="podman load -qi /etc/docker/image.tar", after="alone:podman rm -ft0 job"
    ),
    "ctr run --annotation holdfast.cpus=4 …": Claim(
        typed=f"ctr run --annotation holdfast.cpus={FEW} -d --snapshotter native {IMAGE} job",
        before="systemctl start containerd && ctr image import --snapshotter native /etc/docker/image.tar", after="alone:ctr task rm -f job && ctr container rm job",
    ),
    "holdfast cpu assign train 4": Claim((0,), (r"^1 container has CPUs of its own",), typed=f"holdfast cpu assign train {FEW}"),
    "holdfast cpu release train": Claim((0,), (r"^0 containers have CPUs of their own",)),
    "# holdfast cpu status": Claim((0,), before=f"holdfast cpu assign train {FEW}"),
}

# Running text speaks of these; they are typed elsewhere, or are no whole command.
MENTIONS = {
    "systemctl daemon-reload": "typed before the examples that show what it did",
    "holdfast mend": "deprecated: e2e.cli has it",
    "holdfast setup ENGINE": "stands for the engines",
    "holdfast cpu": "stands for its subcommands",
    "holdfast-kube --nvidia-config FILE": "e2e.plugin has it",
    "holdfastd --check-config": "typed together with others, and for every example of a config",
    "holdfast setup docker": "typed together with a reload",
    "holdfast setup containerd --undo": "e2e.setup has it",
    "holdfast setup crio --undo": "e2e.setup has it",
    "holdfast setup podman --undo": "e2e.setup has it",
    "holdfast setup node --keep-device-files": "unit.setup has it: there is no driver here that could be reloaded",
    "holdfast blame": "typed with options",
    "holdfast ps -o wide": "typed in the first guide",
    "holdfast setup ENGINE --default": "stands for the engines",
    "holdfast cdi generate": "typed with options",
    "holdfast cdi resolve NAME": "typed with a name",
    "holdfast setup node --load-modules": "typed with --dry-run",
    "holdfast-runtime hook create-container": "what a CDI spec calls: e2e.runtime has it",
    "docker run --gpus": "typed with the runtime, in a guide",
}

# Running text has these alone, and they are typed.
TYPED_MENTIONS = {"holdfast grant web 'c 195:0 rw'", "holdfast setup containerd", "holdfast-kube --check-config", r"holdfast cdi generate --file FILE --output yaml\|json"}

TEXTS = {
    "1  a GPU is injected               NVIDIA's legacy hook edits the device cgroup,": "",  # a picture
    "unhealthy resource=nvidia.com/gpu device=GPU-1b2c… why='/dev/nvidia-uvm is missing'": "sickness",
    "kubelet is offered nvidia.com/gpu: 1 of 2 healthy, 12 allocations, 1 refused": "offers",
}

# Documents about clusters, and references. Their lines are typed where there is such a thing.
KUBERNETES, KUBECTL, CPU, DRA, HTTP = (f"docs/{name}.md" for name in ("KUBERNETES", "KUBECTL", "CPU", "DRA", "HTTP"))
MAKES_IMAGE = NotHere("makes an image: e2e.image does it, and loads it with docker, podman and ctr")
IN_CLUSTER = NotHere("there is no cluster: packaging.manifest, packaging.chart and e2e.image have what it consists of")
MANY_NODES = NotHere("there is no cluster: e2e.kubectl asks 500 nodes of a stand-in")
ELSEWHERE: dict[str, NotHere] = {
    '{{ template "base" . }}': NotHere("k3s is not here: unit.setup has the file that it makes of this"),
    "tools/image": MAKES_IMAGE,
    "tools/image --name registry.example.com/holdfast:0.1.0": MAKES_IMAGE,
    "docker load -i build/release/holdfast-image-0.1.0-amd64.tar": MAKES_IMAGE,
    "ctr -n k8s.io images import build/release/holdfast-image-0.1.0-amd64.tar": MAKES_IMAGE,
    "kubectl create namespace holdfast": IN_CLUSTER,
    "kubectl label namespace holdfast pod-security.kubernetes.io/enforce=privileged": IN_CLUSTER,
    "helm install holdfast packaging/helm/holdfast -n holdfast --set image.repository=registry.example.com/holdfast": IN_CLUSTER,
    "kubectl apply -f packaging/kubernetes/holdfast.yaml": IN_CLUSTER,
    "kubectl -n holdfast rollout status daemonset/holdfast": IN_CLUSTER,
    "kubectl -n holdfast exec daemonset/holdfast -c guard -- holdfast doctor": IN_CLUSTER,
    "kubectl -n holdfast exec daemonset/holdfast -c guard -- holdfast ps": IN_CLUSTER,
    "helm upgrade holdfast packaging/helm/holdfast -n holdfast --reuse-values --set runtime.install=false --set runtime.undo=true": IN_CLUSTER,
    "kubectl get pods -A -o jsonpath='{range .items[?(@.spec.runtimeClassName==\"holdfast\")]}{.metadata.namespace} {.metadata.name}{\"\\n\"}{end}'": IN_CLUSTER,
    "helm uninstall holdfast -n holdfast": IN_CLUSTER,
    "kubectl taint nodes --all holdfast.dev/device-access-": IN_CLUSTER,
    "kubectl holdfast doctor": MANY_NODES,
    "kubectl holdfast ps": MANY_NODES,
    "kubectl holdfast blame --since 1h --losses": MANY_NODES,
    "kubectl holdfast cpu status": MANY_NODES,
    "kubectl holdfast doctor ml/train-0": MANY_NODES,
    "kubectl holdfast ps --node gpu-7": MANY_NODES,
    "$ kubectl holdfast doctor": MANY_NODES,
    '{"cpus": [[cpu, core, socket, numa, cache], …],': NotHere("the form of a file: e2e.cpu reads such files"),
    '{"topology": "workstation",': NotHere("the scenario that `holdfast cpu simulate` is typed with"),
    '[plugins."io.containerd.nri.v1.nri"]': NotHere("containerd's config: e2e.nri starts containerd with it"),
}

# A line that only the documents or only this machine can have.
NOT_COMPARED = [
    r"    processes N opened it before and go on using it: no need to restart them",  # Without a GPU nothing can be opened: ENXIO.
    r"    \S+/config.json has no rule for it: .*",  # The document's container was given its GPU by docker.
]


# ---- Outputs, with what differs from machine to machine made equal --------------------------------------------------

EQUAL = [
    (r"docker-[0-9a-f]+…?\.scope", "docker-ID.scope"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"(\d+(ms|s|m|h|d) after|when) the container started", "SPAN after the container started"),
    (r"program:\d+", "program:N"),
    (r"processes [\d, ]+", "processes N "),
    (r"'DeviceAllow=/dev/char/\d+:\d+ rw'( 'DeviceAllow=/dev/char/\d+:\d+ rw')*", "'DeviceAllow=NODES'"),
    (r"'c \d+:\d+ rw'( 'c \d+:\d+ rw')*", "'RULES'"),
    (r"/dev/nvidia[\w-]*(, /dev/nvidia[\w-]*)*( \(c \d+:\d+\))?", "NODES"),
    (r"GPU-[\w-]+…?", "GPU-ID"),
    (r" {2,}(?=\S)(?<!^ )", "  "),
]


def shape(lines: list[str]) -> list[str]:
    """Also without lines that repeat the one above for another device."""
    out: list[str] = []
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        text = line.strip()
        for pattern, equal in EQUAL:
            text = re.sub(pattern, equal, text)
        if not out or out[-1] != indent + text or not text:
            out.append(indent + text)
    return out


def table(lines: list[str]) -> list[str]:
    """A table's cells: a number, or a dash where this machine does not know it."""
    return [" ".join("N" if re.fullmatch(r"[\d,-]+", cell) else cell for cell in line.split()) for line in lines]


def difference(shown: list[str], printed: list[str]) -> str:
    """What the document has otherwise than the program; a last line of … says that more follows."""
    is_cut = shown[-1] == "…"
    want, have = ([line for line in shape(lines) if not any(re.fullmatch(one, line) for one in NOT_COMPARED)] for lines in (shown, printed))
    if is_cut:
        want, have = want[:-1], have[: len(want) - 1]
    if any("NUMA  DEVICES ON" in line for line in want):
        want, have = table(want), table(have)
    if want == have:
        return ""
    at = next((i for i, pair in enumerate(zip(want, have)) if pair[0] != pair[1]), min(len(want), len(have)))
    lines = [f"the document has: {want[at] if at < len(want) else 'nothing more'}", f"the program has:  {have[at] if at < len(have) else 'nothing more'}"]
    return "\n".join([*lines, "the whole output:", *printed])


# ---- Typing ---------------------------------------------------------------------------------------------------------


class Shell:
    """A root shell of the machine, in the user's checkout. Variables and aliases last."""

    START = "export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C.UTF-8; shopt -s expand_aliases; cd "
    MARK = "-----the end: "

    def __init__(self, machine: Machine):
        self.machine = machine
        self.process = subprocess.Popen(machine.enter("bash"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.type(self.START + HOME)

    def type(self, line: str) -> tuple[int, str]:
        """The exit code, and what was printed on both outputs. The lines that follow are not the command's to read."""
        self.process.stdin.write(f"{{ {line}\n}} </dev/null\n_code=$?; echo; echo '{self.MARK}'$_code\n".encode())
        self.process.stdin.flush()
        printed, end = b"", time.monotonic() + TIMEOUT
        while not (found := re.search(rf"\n{self.MARK}(\d+)\n$", printed.decode(errors="replace"))):
            ready = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]
            read = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not read:
                raise AssertionError(f"the shell {'ended' if ready else 'hangs'} at: {line}\n{printed.decode(errors='replace')}")
            printed += read
        return int(found[1]), printed.decode(errors="replace")[: found.start()]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def interrupt(process: subprocess.Popen) -> None:
    """Ctrl-C for what runs behind nsenter and a shell."""
    ours = engines.descendants([process.pid])
    parents = {engines.parent_of(pid) for pid in ours}
    for pid in ours - parents:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)


class Story:
    """A machine, the shell of its user, and what happens to it."""

    def __init__(self, test: "FirstHour", machine: Machine):
        self.test, self.machine, self.losses = test, machine, 0
        self.shell = Shell(machine)
        test.addCleanup(self.shell.close)

    def ok(self, command: str) -> str:
        code, printed = self.shell.type(command)
        if code != 0:
            raise AssertionError(f"{command}: exit code {code}: {printed}")
        return printed

    def do(self, step: str) -> None:
        name, _, rest = step.partition(":")
        method = getattr(self, f"do_{name}", None)
        method(rest) if method else step and self.ok(step)

    # Steps between the lines

    def do_containers(self, names: str) -> None:
        """`train` has a GPU, and `web` a device of another class."""
        self.ok("systemctl start docker && docker load -qi /etc/docker/image.tar")
        for name in names.split():
            self.start_with_gpu(name) if name == "train" else self.ok(f"docker run -d --stop-timeout 0 --name {name} --device /dev/fuse {IMAGE}")

    def start_with_gpu(self, name: str) -> None:
        """A GPU that systemd's unit does not list, so that the next daemon-reload takes it away."""
        if LEAVES_DEVICES_OUT:
            self.ok(f"find /dev/char -mindepth 1 -delete; docker run -d --stop-timeout 0 --name {name} {GPU} {IMAGE}")
            return
        # As NVIDIA's legacy hook gives it: behind the runtime's back. holdfast remembers it in its ledger.
        id_ = self.ok(f"docker run -d --stop-timeout 0 --name {name} {IMAGE}").strip()
        root = self.ok(f"echo /proc/$(docker inspect -f '{{{{.State.Pid}}}}' {name})/root").strip()
        numbers = {f"/dev/{node}": gpu_stage.NODES[f"/dev/{node}"] for node in NODES}
        self.ok("; ".join(f"mknod -m 666 {root}{path} c {major} {minor}" for path, (major, minor) in numbers.items()))
        nodes = [{"path": path, "type": "c", "major": major, "minor": minor, "access": "rw"} for path, (major, minor) in numbers.items()]
        entry = {"version": 1, "container": id_, "cgroup": f"/system.slice/docker-{id_}.scope", "nodes": nodes}
        self.ok("mkdir -p /run/holdfast/ledger; chmod 700 /run/holdfast/ledger")
        self.machine.write(f"/run/holdfast/ledger/{id_}.json", json.dumps(entry))
        self.ok(f"chmod 600 /run/holdfast/ledger/{id_}.json")
        program = f"{HOME}/build/release/src/programs/holdfast/holdfast"
        self.ok(f"{program} grant {name} " + " ".join(f"'c {major}:{minor} rw'" for major, minor in numbers.values()))

    def do_cure(self, code: str) -> None:
        """The first cure that the doctor names for a finding, if it has that finding: HF-304 depends on the runtime."""
        report = json.loads(self.shell.type("holdfast doctor -o json")[1])
        cures = [finding["cure"][0] for finding in report["findings"] if finding["code"] == code]
        for cure in cures:
            self.ok(cure)

    def do_lose(self, name: str) -> None:
        """Another program replaces the one on the container's cgroup, and refuses its devices."""
        self.losses += 1
        cgroup = "/sys/fs/cgroup/system.slice/docker-$(docker inspect -f '{{.Id}}' " + name + ").scope"
        self.ok(f"python3 attack.py replace {cgroup} {self.losses}")

    def do_risk(self, _: str) -> None:
        """A container that a daemon-reload before the guard's start would take the GPU from."""
        self.start_with_gpu("old")

    def do_package_starts_the_guard(self, _: str) -> None:
        self.do_risk("")
        self.ok("systemctl start holdfastd && systemctl enable holdfastd")
        self.do_guarded("")

    def do_guarded(self, _: str) -> None:
        """Until the guard has all containers behind its shield: none has lost a device by the installation."""
        shielded = eventually(lambda: "shield: 3 of 3" in self.shell.type("holdfast doctor")[1], TIMEOUT, 0.1)
        self.test.assertTrue(shielded, self.shell.type("holdfast doctor; cat /var/log/holdfastd.service.log")[1])
        code, printed = self.shell.type("holdfast blame old --losses")
        self.ok("docker rm -f old")
        self.test.assertEqual(code, 0, printed)

    def do_alone(self, remove: str) -> None:
        """Until the container has CPUs of its own; then it is removed."""
        alone = eventually(lambda: self.shell.type("holdfast cpu status")[1].startswith("1 container has"), TIMEOUT, 0.1)
        self.test.assertTrue(alone, self.shell.type("holdfast cpu status")[1])
        self.ok(remove)
        # All of them are shared again.
        eventually(lambda: re.search(r"^0 containers(?s:.*)shared pool (\S+), .*, online \1\n", self.shell.type("holdfast cpu status")[1]), TIMEOUT, 0.1)

    def do_scenario(self, _: str) -> None:
        """The one of docs/CPU.md."""
        blocks = re.findall(r"(?ms)^```\w*\n(.*?)^```$", (ROOT / "docs/CPU.md").read_text())
        self.machine.write(f"{HOME}/scenario.json", next(block for block in blocks if '"ops"' in block))

    def do_kubelet_state(self, _: str) -> None:
        self.machine.write("/var/lib/kubelet/cpu_manager_state", '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}')

    def do_torn_kubelet_state(self, _: str) -> None:
        self.machine.write("/var/lib/kubelet/cpu_manager_state", '{"policyName":"static","defau')

    # Lines of the documents

    def play(self, item: Item, claim: Claim) -> None:
        self.do(claim.before)
        typed = claim.typed or item.text
        code, printed = self.follow(typed, claim) if claim.until else self.shell.type(typed)
        said = f"{item.where}: {typed}\nexit code {code}\n{printed}"
        self.test.assertIn(code, STOPPED if claim.until else claim.exit, said)
        for pattern in claim.says:
            if pattern == "json":
                json.loads(printed)
            else:
                self.test.assertRegex(printed, pattern, said)
        shown = item.shown or shown_behind(item)
        if shown:
            self.test.assertEqual(difference(shown, printed.splitlines()), "", f"{item.where}: {typed}")
        if promised := re.search(r"\bexit (\d)(?![,\d])(?! if)", item.comment):
            self.test.assertEqual(code, int(promised[1]), said)
        self.do(claim.after)

    def follow(self, line: str, claim: Claim) -> tuple[int, str]:
        """A line that does not end by itself, stopped with Ctrl-C when it has printed what is waited for."""
        with tempfile.TemporaryFile("w+") as out:
            command = self.machine.enter("bash", "-c", f"{Shell.START}{HOME}; {line}")
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)

            def printed() -> str:
                return os.pread(out.fileno(), 1 << 20, 0).decode()

            def is_there() -> bool:
                if process.poll() is not None or re.search(claim.until, printed()):
                    return True
                self.do(claim.again)
                return False

            try:
                found = eventually(is_there, TIMEOUT, 0.1) and process.poll() is None
                interrupt(process)
                code = process.wait(timeout=TIMEOUT)
            finally:
                process.kill()
                process.wait()
            self.test.assertTrue(found, f"{line}: exit code {code}, without {claim.until}:\n{printed()}")
            return code, printed()

    def play_config(self, item: Item) -> None:
        """An example of a config: it stays where the document names its file."""
        path = item.comment or "/etc/holdfast/config.d/example.yaml"
        self.machine.write(path, item.text)
        code, printed = self.shell.type("holdfastd --check-config")
        if code != 0 or not item.comment:
            self.ok(f"rm {path}")
        self.test.assertEqual(code, 0, f"{item.where}: {printed}")
        self.test.assertIn(f"read {path}", printed, item.where)

    def play_sickness(self, item: Item) -> None:
        """Not made again, as a stand-in driver cannot tell its module to come."""
        self.machine.write("/etc/holdfast/config.d/nodes.yaml", "runtime:\n  make_nodes: false\n")
        self.ok("systemctl restart holdfast-kube && mv /dev/nvidia-uvm /dev/uvm-hidden")
        log = "/var/log/holdfast-kube.service.log"
        self.wait_for(f"cat {log}", "unhealthy resource=")
        self.ok("mv /dev/uvm-hidden /dev/nvidia-uvm")
        printed = self.wait_for(f"cat {log}", " healthy resource=")
        for line in shape(item.shown):
            self.test.assertTrue(any(one.endswith(f" {line}") for one in shape(printed.splitlines())), f"{item.where}: {line}\n{printed}")

    def play_offers(self, item: Item) -> None:
        self.ok("mv /dev/nvidia1 /dev/hidden")
        printed = self.wait_for("holdfast devices", "1 of 2 healthy")
        self.ok("mv /dev/hidden /dev/nvidia1")
        numbers = [re.sub(r"\d+ (allocations|refused)", r"N \1", line) for line in shape(item.shown)]
        have = [re.sub(r"\d+ (allocations|refused)", r"N \1", line) for line in shape(printed.splitlines())]
        at = next(i for i, line in enumerate(have) if line.startswith(numbers[0]))
        self.test.assertEqual(have[at + 1], numbers[1], f"{item.where}\n{printed}")

    def wait_for(self, command: str, text: str) -> str:
        found = eventually(lambda: text in self.shell.type(command)[1], TIMEOUT, 0.1)
        printed = self.shell.type(command)[1]
        self.test.assertTrue(found, f"{command}: without {text}: {printed}")
        return printed


def shown_behind(item: Item) -> list[str]:
    """An answer in the comment behind a question, without the exit code: "deny v2:…      exit 1"."""
    return [re.split(r" {2,}", item.comment)[0]] if re.match(r"(allow|deny) v2:", item.comment) else []


# ---- The tests ------------------------------------------------------------------------------------------------------


def documents() -> list[str]:
    return [README, INSTALL, MIGRATE, *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs/guides").glob("*.md"))]


def claim_of(item: Item) -> Claim | NotHere | str | None:
    """What is done with it; None: no test has claimed it."""
    if item.kind == "config":
        return ""
    if item.document in (KUBERNETES, KUBECTL, CPU, DRA, HTTP):
        return "" if item.kind == "mention" else ELSEWHERE.get(item.text)
    if item.kind == "text":
        return TEXTS.get(item.text)
    table = CORE_CLAIMS if item.document == CORES else CLAIMS
    if item.kind == "mention":
        return MENTIONS.get(item.text, CLAIMS.get((item.document, item.text), CLAIMS.get(item.text)))
    name = f"# {item.text}" if item.shown else item.text
    return table.get((item.document, name), table.get(name))


def story_needs() -> str | None:
    if reason := why_no_systemd():
        return reason
    if not RUNTIME or not KUBE:
        return "needs holdfast-runtime and holdfast-kube as arguments"
    return next((f"needs {name}" for name in (*private_machine.PROGRAMS, "docker", "podman", "ctr") if not which(name)), None)


class Documents(unittest.TestCase):
    """Without root."""

    def test_every_line_is_claimed(self):
        items = [item for name in (*documents(), KUBERNETES, KUBECTL, CPU, DRA, HTTP) for item in read_document(ROOT / name, name)]
        unclaimed = [f"{item.where}: {item.text}" for item in items if claim_of(item) is None]
        self.assertEqual(unclaimed, [], "lines of the documents that tests/e2e/first_hour_test.py does not know: it must type them, or say why not")

    def test_every_guide_is_played(self):
        self.assertEqual({name for name, _ in ON_V2} | {CORES}, set(documents()))

    def test_no_claim_is_left_over(self):
        items = [item for name in (*documents(), KUBERNETES, KUBECTL, CPU, DRA, HTTP) for item in read_document(ROOT / name, name)]
        texts = {text for item in items for text in (item.text, f"# {item.text}")}
        names = [key[1] if isinstance(key, tuple) else key for table in (CLAIMS, CORE_CLAIMS, MENTIONS, TEXTS, ELSEWHERE) for key in table]
        self.assertEqual([name for name in names if name not in texts], [], "no document has these lines any more")


    def test_every_command_that_is_spoken_of_exists(self):
        unknown = []
        for path in sorted([ROOT / README, *ROOT.glob("docs/**/*.md")]):
            for item in read_document(path, path.name):
                words = re.match(r"holdfast((?: [a-z][a-z-]*)*)", item.text)
                names = words[1].split() if words and item.kind in ("command", "mention") else []
                if names and subprocess.run([HOLDFAST, names[0], "--help"], capture_output=True).returncode != 0:
                    unknown.append(f"{item.where}: {item.text}")
        self.assertEqual(unknown, [])


class FirstHour(Case):
    maxDiff = None

    def begin(self, version: str) -> Story:
        programs = {"holdfast": HOLDFAST, "holdfastd": HOLDFASTD, "holdfast-runtime": RUNTIME, "holdfast-kube": KUBE}
        checkout = {f"build/release/src/programs/{name}/{name}": pathlib.Path(path) for name, path in programs.items()}
        machine = self.enterContext(private_machine.private_machine(version, checkout | {"packaging": ROOT / "packaging", "attack.py": pathlib.Path(ATTACK)}))
        return Story(self, machine)

    def play(self, story: Story, document: str, sections: tuple[str, ...] | None) -> None:
        for item in read_document(ROOT / document, document):
            is_apart = document == GUARD and item.section in ("Install", "Uninstall")  # Played on their own.
            if item.section not in sections if sections else is_apart:
                continue
            if ENDING:
                self.fail("asked to end")
            began = time.monotonic()
            with self.subTest(item.where):  # A line that fails does not hide those after it.
                self.play_item(story, item, claim_of(item))
            if os.environ.get("HOLDFAST_TRACE"):
                print(f"{time.monotonic() - began:6.2f} s  {item.where}  {item.kind}  {item.text.splitlines()[0]}", file=sys.stderr)

    def play_item(self, story: Story, item: Item, claim: Claim | NotHere | str | None) -> None:
        if item.kind == "config":
            story.play_config(item)
        elif item.kind == "text" and claim:
            getattr(story, f"play_{claim}")(item)
        elif isinstance(claim, Claim) and (item.kind == "command" or item.text in TYPED_MENTIONS):
            story.play(item, claim)

    def test_a_host_with_cgroup_v2(self):
        story = self.begin("v2")
        story.do("containers:train web")
        for document, sections in ON_V2:
            self.play(story, document, sections)

    def test_cores_on_cgroup_v1(self):
        """The cpusets of this machine are v1's."""
        if os.cpu_count() < 2:
            self.skipTest("needs two CPUs")
        story = self.begin("v1")
        story.do("containers:train web")
        for name, place in (("holdfast", "/usr/bin/"), ("holdfastd", "/usr/sbin/")):
            story.ok(f"install -m 755 build/release/src/programs/{name}/{name} {place}")
        story.ok("install -m 644 packaging/holdfastd.service /etc/systemd/system/ && systemctl start holdfastd && systemctl enable holdfastd")
        self.play(story, CORES, None)


def end(*_) -> None:
    """With every cgroup and mount removed. A line that is left in the middle counts as failed, and no other one follows."""
    ENDING.append(True)
    sys.exit(1)


def main() -> None:
    """The documents are read in any case; without a machine to type in the rest is skipped."""
    if reason := why_not() or story_needs():
        print(f"skipped: {reason}", file=sys.stderr)
        done = unittest.main(argv=[sys.argv[0], "Documents"], exit=False)
        sys.exit(77 if done.result.wasSuccessful() else 1)
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # A job in the background ignores it, and so would what is stopped by Ctrl-C.
    wait_for_our_turn()
    run_suite(verbosity=1)


if __name__ == "__main__":
    main()
