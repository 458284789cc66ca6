#!/usr/bin/env python3
"""Reads the #include lines of src/ and holds them against the table of docs/ARCHITECTURE.md, section 2.

Which room may include which of ours, and which third-party headers. Prints one line per breach; exit 1 if there is one.
"""

import pathlib
import re
import sys

# room -> the rooms of ours it may include (itself always)
CORE = ["core/base", "core/device", "core/bpf", "core/cpu", "core/container", "core/report"]
MAY_INCLUDE = {
    "core/base": [],
    "core/device": ["core/base"],
    "core/cpu": ["core/base"],
    "core/bpf": ["core/base", "core/device"],
    "core/container": ["core/base", "core/device", "core/bpf", "core/cpu"],
    "core/report": CORE,
    "kernel": CORE,
    "adapters": CORE + ["kernel"],
    "node": CORE + ["kernel", "adapters"],
    "services": CORE + ["kernel", "adapters", "node"],
    "programs": CORE + ["kernel", "adapters", "node", "services"],
}

# third-party header prefix -> (rooms that may use it, only in .cpp files?)
THIRD_PARTY = {
    "linux/bpf.h": (["core/bpf", "kernel"], False),
    "bpf/": (["kernel"], False),
    "hwloc": (["kernel"], False),
    "nlohmann/": (["adapters", "core/report"], True),
    "yaml-cpp/": (["adapters"], True),
    "dbus/": (["adapters/systemd"], True),
    "grpcpp/": (["adapters/kube"], True),
    "google/protobuf": (["adapters/kube"], True),
    "toml++/": (["adapters"], True),
    "fmt/": (["core/report"], False),
    "spdlog/": (["services", "programs"], True),
    "CLI/": (["programs"], True),
    "gtest/": ([], True),
}

# what core must not touch of the system
FORBIDDEN_IN_CORE = re.compile(r"^(sys/|unistd\.h|fcntl\.h|poll\.h|signal\.h|dirent\.h|pthread|thread|mutex|fstream|filesystem|iostream)")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def room_of(path: str) -> str:
    """core/device/table.h -> core/device; services/rules/x.h -> services/rules; kernel/fd.h -> kernel"""
    parts = path.split("/")
    return parts[0] if parts[0] in ("kernel", "node") else "/".join(parts[:2])


def rule_of(room: str) -> str:
    return room if room in MAY_INCLUDE else room.split("/")[0]


def within(room: str, allowed: list[str]) -> bool:
    return any(room == entry or room.startswith(entry + "/") for entry in allowed)


def breaches(source: pathlib.Path, root: pathlib.Path) -> list[str]:
    name = source.relative_to(root).as_posix()
    room = room_of(name)
    found = []
    if rule_of(room) not in MAY_INCLUDE:
        return [f"{name}: {room} is no room of the house"]
    for number, line in enumerate(source.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        style, header = match.groups()
        where = f"{name}:{number}: includes {header}"
        if style == '"':
            target = room_of(header) if "/" in header else room
            sibling = target != room and rule_of(target) == rule_of(room) and rule_of(room) in ("adapters", "services", "programs")
            if sibling or (target != room and not within(target, MAY_INCLUDE[rule_of(room)])):
                found.append(f"{where}: {room} may not use {target}")
            continue
        if room.startswith("core/") and FORBIDDEN_IN_CORE.match(header):
            found.append(f"{where}: core knows no system")
        for prefix, (rooms, only_cpp) in THIRD_PARTY.items():
            if not header.startswith(prefix):
                continue
            if not within(room, rooms):
                found.append(f"{where}: not for {room}")
            elif only_cpp and source.suffix == ".h":
                found.append(f"{where}: only in a .cpp file")
    return found


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent) / "src"
    sources = [path for path in sorted(root.rglob("*")) if path.suffix in (".h", ".cpp") and not path.stem.endswith("_test")]
    found = [line for source in sources for line in breaches(source, root)]
    print("\n".join(found) if found else f"{len(sources)} files keep to their rooms")
    return 1 if found or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
