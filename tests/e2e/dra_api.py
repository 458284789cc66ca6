"""A stand-in for the API server: nodes, ResourceSlices and ResourceClaims, over HTTP on 127.0.0.1. It refuses what a real one refuses."""

import contextlib
import http.server
import json
import re
import socket
import threading
import time
import urllib.parse
import uuid

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = re.compile(r"/apis/resource\.k8s\.io/v1/namespaces/([^/]+)/resourceclaims/([^/]+)")
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
QUANTITY = re.compile(r"\d+(Ki|Mi|Gi|Ti)?")


class Refusal(Exception):
    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


def need(condition: bool, what: str) -> None:
    if not condition:
        raise Refusal(422, f"ResourceSlice is invalid: {what}")


def check_device(device: dict) -> None:
    need(bool(LABEL.fullmatch(device["name"])) and len(device["name"]) <= 63, f"device name {device['name']}")
    attributes, capacity = device.get("attributes", {}), device.get("capacity", {})
    need(len(attributes) + len(capacity) <= 32, "too many attributes")
    for name, value in attributes.items():
        need(len(name.split("/")[-1]) <= 32 and len(value) == 1, f"attribute {name}")
        (kind, content), = value.items()
        need({"string": str, "int": int, "bool": bool, "version": str}[kind] is type(content), f"attribute {name}")
        need(kind not in ("string", "version") or len(content) <= 64, f"attribute {name} is too long")
        need(kind != "version" or bool(VERSION.fullmatch(content)), f"attribute {name} is no semantic version")
    for name, value in capacity.items():
        need(bool(QUANTITY.fullmatch(value["value"])), f"capacity {name}")


def check_slice(body: dict) -> None:
    spec, name = body["spec"], body["metadata"]["name"]
    need((body["apiVersion"], body["kind"]) == ("resource.k8s.io/v1", "ResourceSlice"), "kind")
    need(bool(SUBDOMAIN.fullmatch(name)) and len(name) <= 253, f"name {name}")
    need(spec["pool"]["generation"] >= 1 and spec["pool"]["resourceSliceCount"] >= 1, "pool")
    need(len(spec["devices"]) <= 128, "too many devices")
    need(len({device["name"] for device in spec["devices"]}) == len(spec["devices"]), "duplicate devices")
    for device in spec["devices"]:
        check_device(device)


class ApiServer:
    def __init__(self, node: str = "node1"):
        self.node, self.node_uid = node, str(uuid.uuid4())
        self.slices: dict[str, dict] = {}
        self.claims: dict[tuple[str, str], dict] = {}
        self.requests: list[str] = []
        self.delay = 0.0  # before each answer
        self.version = 0
        self.conflicts = 0  # so many writes are refused as conflicts
        self.lock = threading.Lock()
        self.server: http.server.ThreadingHTTPServer | None = None
        self.connections: set[socket.socket] = set()
        self.port = 0
        self.start()

    def start(self) -> None:
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                api.connections.add(self.connection)

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                time.sleep(api.delay)
                try:
                    with api.lock:
                        api.requests.append(f"{self.command} {self.path}")
                        status, value = api.handle(self.command, self.path, json.loads(body) if body else None)
                except Refusal as refusal:
                    status, value = refusal.status, {"kind": "Status", "code": refusal.status, "message": str(refusal)}
                text = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer  # noqa: N815

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # clients are killed while they wait
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None
        while self.connections:  # a server that ended answers on no connection
            with contextlib.suppress(OSError):
                self.connections.pop().shutdown(socket.SHUT_RDWR)

    def handle(self, method: str, target: str, body: dict | None) -> tuple[int, dict]:
        path, _, query = target.partition("?")
        if path == f"/api/v1/nodes/{self.node}" and method == "GET":
            return 200, {"kind": "Node", "metadata": {"name": self.node, "uid": self.node_uid}}
        if (found := CLAIMS.fullmatch(path)) and method == "GET":
            if found.groups() not in self.claims:
                raise Refusal(404, f'resourceclaims.resource.k8s.io "{found[2]}" not found')
            return 200, self.claims[found.groups()]
        if path == SLICES and method == "GET":
            return 200, {"kind": "ResourceSliceList", "items": self.selected(query)}
        if path == SLICES and method == "POST":
            return 201, self.create(body)
        if path.startswith(f"{SLICES}/"):
            return 200, self.change(method, path.removeprefix(f"{SLICES}/"), body)
        raise Refusal(404, f"the server could not find {method} {path}")

    def selected(self, query: str) -> list[dict]:
        wanted = dict(pair.split("=") for pair in urllib.parse.parse_qs(query)["fieldSelector"][0].split(","))
        return [one for one in self.slices.values() if all(one["spec"][key.removeprefix("spec.")] == value for key, value in wanted.items())]

    def create(self, body: dict) -> dict:
        if body["metadata"]["name"] in self.slices:
            raise Refusal(409, "already exists")
        return self.store(body)

    def change(self, method: str, name: str, body: dict | None) -> dict:
        if name not in self.slices:
            raise Refusal(404, f"{name} not found")
        if method == "DELETE":
            return self.slices.pop(name)
        now = self.slices[name]
        if self.conflicts > 0 or body["metadata"].get("resourceVersion") != now["metadata"]["resourceVersion"]:
            self.conflicts -= 1
            raise Refusal(409, "the object has been modified")
        for key in ("driver", "nodeName"):
            need(body["spec"][key] == now["spec"][key], f"{key} is immutable")
        need(body["spec"]["pool"]["name"] == now["spec"]["pool"]["name"], "pool.name is immutable")
        return self.store(body)

    def store(self, body: dict) -> dict:
        check_slice(body)
        self.version += 1
        body["metadata"] = body["metadata"] | {"resourceVersion": str(self.version), "uid": str(uuid.uuid4())}
        self.slices[body["metadata"]["name"]] = body
        return body

    # What the tests ask and do

    def pool(self) -> list[dict]:
        """The slices of the newest generation, if all of them are there."""
        with self.lock:
            slices = [one["spec"] for one in self.slices.values()]
        newest = max((one["pool"]["generation"] for one in slices), default=0)
        current = [one for one in slices if one["pool"]["generation"] == newest]
        return current if all(one["pool"]["resourceSliceCount"] == len(current) for one in current) else []

    def devices(self) -> dict[str, dict]:
        return {device["name"]: device for one in self.pool() for device in one["devices"]}

    def allocate(self, name: str, *devices: str, **changes) -> tuple[str, str, str]:
        """A claim to which these devices are allocated; how kubelet calls it."""
        uid = str(uuid.uuid4())
        results = [
            {"request": "gpu", "driver": "gpu.holdfast.dev", "pool": self.node, "device": device} | changes for device in devices
        ]
        status = {"allocation": {"devices": {"results": results}}} if devices else {}
        with self.lock:
            self.claims["training", name] = {"kind": "ResourceClaim", "metadata": {"name": name, "namespace": "training", "uid": uid}, "status": status}
        return "training", name, uid
