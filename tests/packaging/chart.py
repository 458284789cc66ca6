"""The chart as Kubernetes objects: rendered by helm, or by a program with helm's template engine (render.go)."""

import atexit
import copy
import functools
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "packaging/helm/holdfast"
MANIFEST = ROOT / "packaging/kubernetes/holdfast.yaml"
NAMESPACE = "holdfast"
GO_CODE = pathlib.Path("/usr/share/gocode")


def why_not() -> str | None:
    if shutil.which("helm"):
        return None
    if not shutil.which("go"):
        return "needs helm, or golang-go and golang-github-masterminds-sprig-dev"
    if not (GO_CODE / "src/github.com/Masterminds/sprig").exists():
        return "needs helm, or golang-github-masterminds-sprig-dev"
    return None


MARK = "# sha256 of the chart's files: "


def digest() -> str:
    """Says which chart a manifest was made of, also where nothing can render the chart."""
    files = sorted(path for path in CHART.rglob("*") if path.is_file())
    whole = hashlib.sha256()
    for path in files:
        whole.update(f"{path.relative_to(CHART)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def default_values() -> dict:
    return yaml.safe_load((CHART / "values.yaml").read_text())


def merged(values: dict, more: dict) -> dict:
    """As helm merges values: maps by key, everything else as a whole."""
    result = copy.deepcopy(values)
    for key, value in more.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else copy.deepcopy(value)
    return result


def render(more: dict | None = None, *, notes: bool = False, release: str = "holdfast", kubernetes: str = "v1.36.0") -> str:
    with tempfile.TemporaryDirectory(prefix="hf-chart-") as directory:
        if shutil.which("helm") and not notes:
            values = pathlib.Path(directory) / "values.yaml"
            values.write_text(yaml.safe_dump(more or {}))
            return call(["helm", "template", release, str(CHART), "--namespace", NAMESPACE, "--values", str(values), "--kube-version", kubernetes])
        values, about = pathlib.Path(directory) / "values.json", pathlib.Path(directory) / "chart.json"
        values.write_text(json.dumps(merged(default_values(), more or {})))
        about.write_text(json.dumps(yaml.safe_load((CHART / "Chart.yaml").read_text())))
        command = [built_renderer(), str(CHART), NAMESPACE, release, str(values), str(about)]
        return call(command, {"KUBE_VERSION": kubernetes} | ({"NOTES": "1"} if notes else {}))


@functools.cache
def built_renderer() -> str:
    """Built once; it is removed when this process ends."""
    directory = tempfile.mkdtemp(prefix="hf-chart-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    environment = {"GO111MODULE": "off", "GOPATH": f"{GO_CODE}", "GOFLAGS": "", "GOCACHE": f"{directory}/cache"}
    call(["go", "build", "-o", f"{directory}/render", str(pathlib.Path(__file__).with_name("render.go"))], environment)
    return f"{directory}/render"


def call(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=os.environ | (environment or {}))
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


def objects_in(text: str) -> list[dict]:
    return [document for document in yaml.safe_load_all(text) if document]


def render_objects(more: dict | None = None, **options: str) -> list[dict]:
    return objects_in(render(more, **options))
