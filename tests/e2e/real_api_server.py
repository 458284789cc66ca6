"""A real kube-apiserver with an etcd of its own, in a directory of the test."""

import contextlib
import json
import os
import pathlib
import ssl
import subprocess
import time
import urllib.error
import urllib.request

from api_server import kubeconfig, run
from support import free_port, which

TOKEN = "of-the-administrator"


class RealApiServer:
    def __init__(self, directory: pathlib.Path):
        self.directory = directory / "real"
        self.programs = {name: os.environ.get(variable) or which(name) for name, variable in (("kube-apiserver", "HOLDFAST_KUBE_APISERVER"), ("etcd", "HOLDFAST_ETCD"))}
        absent = [name for name, path in self.programs.items() if not path]
        self.missing = f"no {' and no '.join(absent)} (HOLDFAST_KUBE_APISERVER, HOLDFAST_ETCD or PATH)" if absent else ""
        self.port, self.etcd, self.certificates = free_port(), free_port(), directory
        self.processes: dict[str, subprocess.Popen] = {}

    def start(self) -> None:
        self.directory.mkdir()
        (self.directory / "tokens.csv").write_text(f'{TOKEN},admin,1,"system:masters"\n')
        key = str(self.directory / "accounts.key")
        run("openssl", "genrsa", "-out", key, "2048")
        self.launch("etcd", "--data-dir", str(self.directory / "etcd"), "--listen-client-urls", f"http://127.0.0.1:{self.etcd}",
                    "--advertise-client-urls", f"http://127.0.0.1:{self.etcd}", "--listen-peer-urls", f"http://127.0.0.1:{free_port()}")  # fmt: skip
        self.arguments = [
            "--etcd-servers", f"http://127.0.0.1:{self.etcd}", "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", str(self.port),
            "--tls-cert-file", str(self.certificates / "server.crt"), "--tls-private-key-file", str(self.certificates / "server.key"),
            "--token-auth-file", str(self.directory / "tokens.csv"), "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.96.0.0/24",
            "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", key, "--service-account-signing-key-file", key,
            "--disable-admission-plugins", "ServiceAccount", "--enable-priority-and-fairness=true", "--allow-privileged=true",
        ]  # fmt: skip
        self.restart()

    def launch(self, name: str, *arguments: str) -> None:
        with (self.directory / f"{name}.log").open("a") as out:
            self.processes[name] = subprocess.Popen([self.programs[name], *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def restart(self) -> None:
        if old := self.processes.pop("kube-apiserver", None):
            old.kill()
            old.wait()
        self.launch("kube-apiserver", *self.arguments)
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                self.get("/readyz")
                return
            except (OSError, urllib.error.URLError):
                time.sleep(0.5)
        raise RuntimeError("kube-apiserver does not come up: " + (self.directory / "kube-apiserver.log").read_text()[-2000:])

    def ask(self, path: str, body: dict | None = None, method: str | None = None, token: str = TOKEN, content: str = "application/json") -> dict:
        context = ssl.create_default_context(cafile=str(self.certificates / "ca.crt"))
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", data=json.dumps(body).encode() if body else None, method=method,
                                         headers={"Authorization": f"Bearer {token}", "Content-Type": content})  # fmt: skip
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text.startswith(b"{") else {}

    def get(self, path: str) -> dict:
        return self.ask(path)

    def create(self, path: str, body: dict) -> dict:
        return self.ask(path, {"apiVersion": "v1"} | body)

    def delete(self, path: str) -> None:
        with contextlib.suppress(urllib.error.HTTPError):  # it is gone already
            self.ask(path, method="DELETE")

    def kubeconfig(self) -> str:
        return kubeconfig(self.certificates, self.port, f"{{token: {TOKEN}}}")

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
