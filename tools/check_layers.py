#!/usr/bin/env python3
"""Checks the #include lines of src/ against the table of docs/ARCHITECTURE.md, section 2.

It says which layers a layer may include. Which third-party headers it may use is in THIRD_PARTY. Prints one line per violation; exit 1 if there
is one.
"""

import pathlib
import re
import sys

TABLE = pathlib.Path(__file__).parent.parent / "docs/ARCHITECTURE.md"


def read_table(text: str) -> dict[str, list[str]]:
    """layer -> the layers it may include (itself always), from the rows "| `layer` | may include | …" of the document."""
    may: dict[str, list[str]] = {}
    for name, words in re.findall(r"^\| `([a-z/]+?)(?:/\*)?` \| ([^|]+) \|", text[text.index("## 2. ") : text.index("## 3. ")], re.M):
        allowed: list[str] = []
        for word in re.split(r", |; ", words.strip()):
            area = name.split("/")[0]
            if word in ("all", "all above"):
                allowed += may
            elif word == "core":
                allowed += [layer for layer in may if layer.startswith("core/")]
            elif word == "document":
                allowed.append("adapters/document")
            elif f"{area}/{word}" in may:
                allowed.append(f"{area}/{word}")
            elif re.fullmatch(r"[a-z/]+", word):
                allowed.append(word)
        may[name] = allowed
    return may


MAY_INCLUDE = read_table(TABLE.read_text())

# third-party header prefix -> (layers that may use it, only in .cpp files?)
THIRD_PARTY = {
    "linux/bpf.h": (["core/bpf", "kernel"], False),
    "bpf/": (["kernel/cgroup", "kernel/watch"], False),
    "hwloc": (["kernel/cpu"], False),
    "boost/asio": (["kernel/net", "services/web", "adapters/apiserver"], False),
    "boost/beast": (["services/web", "adapters/apiserver"], False),
    "openssl/": (["adapters/apiserver"], True),
    "nlohmann/json.hpp": (["adapters", "render"], True),
    "nlohmann/json_fwd.hpp": (["adapters/document", "render"], False),
    "yaml.h": (["adapters/document"], True),
    "dbus/": (["adapters/systemd"], True),
    "grpcpp/": (["services/plugin"], False),
    "google/protobuf": (["adapters/kube", "adapters/nri"], True),
    "toml++/": (["adapters/document"], True),
    "spdlog/": (["programs/daemon"], True),
    "CLI/": (["programs"], True),
    "gtest/": ([], True),
}

# headers of the system and of no library
SYSTEM = re.compile(r"^[a-z_0-9]+(\.h)?$|^(sys|linux|net|netinet|arpa|asm)/")

# what core must not touch of the system
FORBIDDEN_IN_CORE = re.compile(r"^(sys/|unistd\.h|fcntl\.h|poll\.h|signal\.h|dirent\.h|pthread|thread|mutex|fstream|filesystem|iostream)")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def layer_of(path: str) -> str:
    """core/device/table.h -> core/device; services/rules/x.h -> services/rules; kernel/files/fd.h -> kernel/files"""
    parts = path.split("/")
    return parts[0] if parts[0] in ("host", "render") else "/".join(parts[:2])


def rule_of(layer: str) -> str:
    return layer if layer in MAY_INCLUDE else layer.split("/")[0]


def within(layer: str, allowed: list[str]) -> bool:
    return any(layer == entry or layer.startswith(entry + "/") for entry in allowed)


def violations(source: pathlib.Path, root: pathlib.Path) -> list[str]:
    name = source.relative_to(root).as_posix()
    layer = layer_of(name)
    found = []
    if rule_of(layer) not in MAY_INCLUDE:
        return [f"{name}: {layer} is not a known layer"]
    for number, line in enumerate(source.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        style, header = match.groups()
        where = f"{name}:{number}: includes {header}"
        if style == '"':
            target = layer_of(header) if "/" in header else layer
            sibling = target != layer and rule_of(target) == rule_of(layer) and rule_of(layer) in ("adapters", "services", "programs")
            if sibling or (target != layer and not within(target, MAY_INCLUDE[rule_of(layer)])):
                found.append(f"{where}: {layer} may not use {target}")
            continue
        if layer.startswith("core/") and FORBIDDEN_IN_CORE.match(header):
            found.append(f"{where}: core must not use the system")
        if not SYSTEM.match(header) and not any(header.startswith(prefix) for prefix in THIRD_PARTY):
            found.append(f"{where}: a library that no layer may use")
        for prefix, (layers, only_cpp) in THIRD_PARTY.items():
            if not header.startswith(prefix):
                continue
            if not within(layer, layers):
                found.append(f"{where}: not for {layer}")
            elif only_cpp and source.suffix == ".h":
                found.append(f"{where}: only in a .cpp file")
    return found


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent) / "src"
    sources = [path for path in sorted(root.rglob("*")) if path.suffix in (".h", ".cpp") and not path.stem.endswith("_test")]
    found = [line for source in sources for line in violations(source, root)]
    print("\n".join(found) if found else f"{len(sources)} files keep to their layers")
    return 1 if found or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
