#!/usr/bin/env python3
"""A small API server over HTTPS: it keeps events, pods' namespaces and one cluster node, and plays failures on request.

As a program: api_server.py DIRECTORY. It creates a certificate authority and certificates in the directory, prints its port, and
serves until its standard input ends. Tests control it through /control, or use the class ApiServer itself.
"""

import contextlib
import copy
import http.server
import json
import pathlib
import shutil
import socketserver
import ssl
import subprocess
import sys
import threading
import time

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def make_certificates(directory: pathlib.Path) -> None:
    """ca.crt; server.crt for 127.0.0.1 and "api.test"; client.crt, of the same authority."""
    ca, key = str(directory / "ca.crt"), str(directory / "ca.key")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    run("openssl", "req", "-x509", *curve, "-keyout", key, "-out", ca, "-days", "2", "-subj", "/CN=test authority")
    for name, extension in (("server", "subjectAltName=IP:127.0.0.1,DNS:api.test"), ("client", "extendedKeyUsage=clientAuth")):
        request, text = str(directory / f"{name}.csr"), directory / f"{name}.ext"
        text.write_text(extension + "\n")
        run("openssl", "req", "-new", *curve, "-keyout", str(directory / f"{name}.key"), "-out", request, "-subj", f"/CN={name}")
        run("openssl", "x509", "-req", "-in", request, "-CA", ca, "-CAkey", key, "-CAcreateserial", "-days", "2", "-out", str(directory / f"{name}.crt"), "-extfile", str(text))


class Refused(Exception):
    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


def merge(target: dict, patch: dict, strategic: bool) -> dict:
    """RFC 7386; strategic: conditions are merged by their type, as the API server does it."""
    for key, value in patch.items():
        if strategic and key == "conditions":
            kept = {one["type"]: one for one in target.get(key, [])}
            for one in value:
                kept[one["type"]] = kept.get(one["type"], {}) | one
            target[key] = list(kept.values())
        elif isinstance(value, dict):
            target[key] = merge(target.get(key) or {}, value, strategic)
        elif value is None:
            target.pop(key, None)
        else:
            target[key] = value
    return target


class Cluster:
    """The objects, and what is to go wrong. Every field may be changed by a test at any time."""

    def __init__(self, node: str = "node-1"):
        self.lock = threading.Lock()
        self.events: dict[str, dict] = {}  # by "namespace/name"
        self.node = {"kind": "Node", "metadata": {"name": node, "resourceVersion": "1"}, "spec": {}, "status": {"conditions": []}}
        self.token = ""  # required where it is not empty
        self.requests: list[dict] = []
        self.failures: list[dict] = []  # each for one request: status, retry_after, hang, close, garbage, huge
        self.hangs = ""  # requests whose path contains it get no answer, as with an admission webhook that hangs
        self.conflicts = 0  # so many changes of the node are refused: another client was faster

    def writes(self) -> list[dict]:
        with self.lock:
            return [request for request in self.requests if request["method"] != "GET" and request["status"] < 300]

    def condition(self) -> dict:
        with self.lock:
            return next((one for one in self.node["status"]["conditions"] if one["type"] == "DeviceAccess"), {})

    def answer(self, method: str, path: str, body: dict, kind: str) -> dict:
        parts = path.split("?")[0].strip("/").split("/")
        if parts[:3] == ["api", "v1", "namespaces"] and parts[4:5] == ["events"]:
            return self.change_event(method, parts[3], parts[5:], body)
        if parts[:4] == ["api", "v1", "nodes", self.node["metadata"]["name"]]:
            return self.change_node(method, parts[4:], body, kind)
        raise Refused(404, f"the server could not find the requested resource {path}")

    def change_event(self, method: str, namespace: str, name: list[str], body: dict) -> dict:
        if method == "POST" and not name:
            for field in ("reason", "type", "message", "involvedObject", "count", "firstTimestamp", "lastTimestamp"):
                if field not in body:
                    raise Refused(422, f"event without {field}")
            if body["involvedObject"]["namespace"] != namespace:
                raise Refused(422, "involvedObject.namespace: does not match event.namespace")
            key = f"{namespace}/{body['metadata']['name']}"
            if key in self.events:
                raise Refused(409, f'events "{key}" already exists')
            self.events[key] = body
            return body
        key = f"{namespace}/{''.join(name)}"
        if key not in self.events:
            raise Refused(404, f'events "{key}" not found')
        if method == "PATCH":
            merge(self.events[key], body, False)
        return self.events[key]

    def change_node(self, method: str, rest: list[str], body: dict, kind: str) -> dict:
        if method == "PATCH":
            wanted = body.get("metadata", {}).get("resourceVersion")
            if not rest and self.conflicts > 0:
                self.conflicts -= 1
                self.node["metadata"]["resourceVersion"] = str(int(self.node["metadata"]["resourceVersion"]) + 1)
            if wanted not in (None, self.node["metadata"]["resourceVersion"]):
                raise Refused(409, "the object has been modified; please apply your changes to the latest version")
            if not set(body) <= ({"status"} if rest == ["status"] else {"metadata", "spec"}):
                raise Refused(422, f"{sorted(body)} in a patch of {rest or 'the node'}")
            merge(self.node, body, kind == STRATEGIC)
            self.node["metadata"]["resourceVersion"] = str(int(self.node["metadata"]["resourceVersion"]) + 1)
        return self.node


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "ApiServer"

    def log_message(self, *_) -> None:
        pass

    def reply(self, status: int, body, headers: dict | None = None) -> None:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", JSON)
        self.send_header("Content-Length", str(len(text)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def fail(self, status: int, message: str, headers: dict | None = None) -> None:
        self.reply(status, {"kind": "Status", "status": "Failure", "message": message, "code": status}, headers)

    def serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        cluster = self.server.cluster
        if self.path == "/control":
            return self.control(body)
        with cluster.lock:
            entry = {"method": self.command, "path": self.path, "body": json.loads(body or b"{}"), "status": 0, "at": time.monotonic(),
                     "connection": self.client_address[1], "content_type": self.headers.get("Content-Type", ""), "authorization": self.headers.get("Authorization", "")}
            cluster.requests.append(entry)
            is_hung = cluster.hangs and cluster.hangs in self.path
            failure = {"hang": 60} if is_hung else cluster.failures.pop(0) if cluster.failures else {}
        if failure:
            entry["status"] = failure.get("status", -1)
            return self.play(failure)
        with cluster.lock:
            if cluster.token and self.headers.get("Authorization") != f"Bearer {cluster.token}":
                entry["status"] = 401
                return self.fail(401, "Unauthorized")
            try:
                answer = copy.deepcopy(cluster.answer(self.command, self.path, copy.deepcopy(entry["body"]), entry["content_type"]))
                entry["status"] = 201 if self.command == "POST" else 200
            except Refused as refused:
                entry["status"] = refused.status
                return self.fail(refused.status, str(refused))
        return self.reply(entry["status"], answer)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = serve

    def play(self, failure: dict) -> None:
        if "hang" in failure:
            self.server.ended.wait(failure["hang"])
        if "status" in failure:
            headers = {"Retry-After": str(failure["retry_after"])} if "retry_after" in failure else {}
            return self.fail(failure["status"], failure.get("message", "as the test wants it"), headers)
        self.close_connection = True
        if failure.get("garbage"):
            self.wfile.write(b"\x00\xff" * 1000)
        if failure.get("huge"):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
            with contextlib.suppress(OSError):
                for _ in range(64):
                    self.wfile.write(b"x" * (1 << 20))
        if failure.get("head"):
            with contextlib.suppress(OSError):
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 20) + b"\r\n\r\n")
        return None

    def control(self, body: bytes) -> None:
        """POST: fields of the cluster. GET: all of them."""
        cluster = self.server.cluster
        with cluster.lock:
            for key, value in json.loads(body or b"{}").items():
                setattr(cluster, key, value)
            state = {key: value for key, value in vars(cluster).items() if key != "lock"}
            text = json.dumps(state).encode()
        self.reply(200, text)


class ApiServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, directory: pathlib.Path | None, cluster: Cluster, port: int = 0):
        """Without a directory of certificates it speaks plain HTTP."""
        self.cluster, self.ended = cluster, threading.Event()
        super().__init__(("127.0.0.1", port), Handler)
        self.context = None
        if directory:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(directory / "server.crt", directory / "server.key")
            self.context.load_verify_locations(directory / "ca.crt")
            self.context.verify_mode = ssl.CERT_OPTIONAL
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def finish_request(self, request, client_address) -> None:
        """The handshake belongs to the connection's own thread: a client that hangs must not stop the server."""
        if not self.context:
            return super().finish_request(request, client_address)
        with self.context.wrap_socket(request, server_side=True) as secure:
            return super().finish_request(secure, client_address)

    def handle_error(self, request, client_address) -> None:
        pass  # clients that go away are part of the tests

    @property
    def port(self) -> int:
        return self.server_address[1]

    def stop(self) -> None:
        self.ended.set()
        self.shutdown()
        self.server_close()


def kubeconfig(directory: pathlib.Path, port: int, user: str = "{token: secret}") -> str:
    return f"""apiVersion: v1
kind: Config
current-context: test
contexts: [{{name: test, context: {{cluster: test, user: test}}}}]
clusters: [{{name: test, cluster: {{server: "https://127.0.0.1:{port}", certificate-authority: {directory}/ca.crt}}}}]
users: [{{name: test, user: {user}}}]
"""


def why_not() -> str | None:
    return None if shutil.which("openssl") else "needs openssl"


def main() -> None:
    directory = pathlib.Path(sys.argv[1])
    make_certificates(directory)
    plain, secure = ApiServer(None, cluster := Cluster()), ApiServer(directory, Cluster())
    plain.cluster = secure.cluster = cluster
    print(secure.port, plain.port, flush=True)
    sys.stdin.read()
    secure.stop()
    plain.stop()


if __name__ == "__main__":
    main()
