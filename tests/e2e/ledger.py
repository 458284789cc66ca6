"""Entries of the ledger, in which holdfast-runtime writes down which devices a container was given."""

import contextlib
import json
import pathlib
import time

LEDGER = pathlib.Path("/run/holdfast/ledger")


def write(file: pathlib.Path, text: str) -> None:
    """Another test, or a daemon that stops, may remove the empty directory at any moment."""
    draft = file.with_suffix(".new")
    for _ in range(100):
        with contextlib.suppress(FileNotFoundError):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft.write_text(text)
            draft.chmod(0o600)
            draft.rename(file)
            return
        time.sleep(0.01)
    raise FileNotFoundError(file)


def remove_ledger() -> bool:
    """Whether its directory is gone: an entry of a test that runs beside this one keeps it."""
    with contextlib.suppress(OSError):
        LEDGER.rmdir()
        LEDGER.parent.rmdir()
    return not LEDGER.exists()


@contextlib.contextmanager
def ledger_entry(container: str, nodes: dict[str, tuple[int, int]], **ties: str):
    """Says that the container was given these character devices; `ties` are its bundle or its cgroup."""
    file = LEDGER / f"{container}.json"
    listed = [{"path": path, "type": "c", "major": major, "minor": minor, "access": "rw"} for path, (major, minor) in nodes.items()]
    write(file, json.dumps({"version": 1, "container": container, **ties, "nodes": listed}))
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)
        remove_ledger()
