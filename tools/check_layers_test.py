#!/usr/bin/env python3
"""The layer check finds violations: a generated tree with one of each kind."""

import pathlib
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).parent / "check_layers.py"
CASES = [
    ("core/device/a.h", '#include "core/bpf/b.h"', True),
    ("core/device/a.h", '#include "core/base/result.h"', False),
    ("core/device/a.cpp", "#include <unistd.h>", True),
    ("core/bpf/a.h", "#include <linux/bpf.h>", False),
    ("core/device/a.h", "#include <linux/bpf.h>", True),
    ("kernel/files/a.cpp", '#include "adapters/oci/b.h"', True),
    ("kernel/watch/a.cpp", '#include "kernel/cgroup/b.h"', False),
    ("kernel/cgroup/a.cpp", '#include "kernel/watch/b.h"', True),
    ("kernel/files/a.cpp", "#include <hwloc.h>", True),
    ("services/guard/a.cpp", "#include <spdlog/spdlog.h>", True),
    ("services/guard/a.cpp", "#include <curl/curl.h>", True),
    ("services/guard/a.cpp", "#include <sys/stat.h>", False),
    ("adapters/oci/a.cpp", '#include "adapters/cdi/b.h"', True),
    ("adapters/oci/a.h", '#include "adapters/document/json.h"', False),
    ("adapters/document/a.cpp", '#include "adapters/oci/b.h"', True),
    ("adapters/document/a.cpp", '#include "kernel/files/fd.h"', True),
    ("adapters/document/a.h", "#include <nlohmann/json_fwd.hpp>", False),
    ("adapters/oci/a.h", "#include <nlohmann/json_fwd.hpp>", True),
    ("adapters/engine/a.cpp", "#include <toml++/toml.h>", True),
    ("adapters/oci/a.h", "#include <nlohmann/json.hpp>", True),
    ("adapters/oci/a.cpp", "#include <nlohmann/json.hpp>", False),
    ("services/guard/a.cpp", '#include "services/doctor/b.h"', True),
    ("services/guard/a.cpp", '#include "kernel/files/fd.h"', False),
    ("services/guard/a.cpp", '#include "host/census.h"', False),
    ("host/a.cpp", '#include "adapters/oci/spec.h"', False),
    ("host/a.cpp", '#include "services/doctor/b.h"', True),
    ("adapters/oci/a.cpp", '#include "host/census.h"', True),
    ("programs/holdfast/a.h", "#include <CLI/CLI.hpp>", True),
    ("programs/holdfast/a.cpp", '#include "programs/console/output.h"', False),
    ("programs/console/a.cpp", '#include "services/doctor/b.h"', True),
    ("attic/a.h", "#include <vector>", True),
]

failed = 0
for path, line, is_violation in CASES:
    with tempfile.TemporaryDirectory() as root:
        file = pathlib.Path(root) / "src" / path
        file.parent.mkdir(parents=True)
        file.write_text(line + "\n")
        status = subprocess.run([sys.executable, CHECK, root], capture_output=True, check=False).returncode
        if (status == 1) != is_violation:
            print(f"{path} with {line}: expected {'a violation' if is_violation else 'none'}, exit {status}")
            failed += 1
print(f"{len(CASES) - failed} passed, {failed} failed")
sys.exit(1 if failed else 0)
