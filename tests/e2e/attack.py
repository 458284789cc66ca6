#!/usr/bin/env python3
"""bpf(2) by hand, and attacks on the device programs of a cgroup: a program of its own, so that it has a name and a command line."""

import contextlib
import ctypes
import os
import pathlib
import struct
import sys
import time

LOAD, ATTACH, DETACH, NEXT_ID, OPEN_ID, INFO, QUERY = 5, 8, 9, 11, 13, 15, 16
DEVICE_PROGRAM, DEVICE_ATTACH = 15, 6
MULTI, REPLACE = 2, 4
SYSCALL = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
OPENED: list[int] = []  # programs
LIBC = ctypes.CDLL(None, use_errno=True)

Instructions = list[tuple[int, int, int, int]]  # code, registers (source << 4 | target), offset, constant
LOAD_WORD, MOVE, EXIT, IF_SAME, IF_OTHER = 0x61, 0xB7, 0x95, 0x15, 0x55
MAJOR, MINOR = 4, 8  # in struct bpf_cgroup_dev_ctx


def bpf(command: int, attributes: bytes) -> tuple[int, bytes]:
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    answer = LIBC.syscall(SYSCALL, command, buffer, 128)
    if answer < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command}): {os.strerror(ctypes.get_errno())}")
    return answer, buffer.raw


def kept(descriptor: int) -> int:
    OPENED.append(descriptor)
    return descriptor


def close_programs(but: int = -1) -> None:
    for descriptor in OPENED:
        if descriptor != but:
            os.close(descriptor)
    OPENED[:] = [but] if but in OPENED else []


def load(lines: Instructions) -> int:
    code = ctypes.create_string_buffer(b"".join(struct.pack("=BBhi", *line) for line in lines))
    licence = ctypes.create_string_buffer(b"GPL")
    head = struct.pack("=IIQQ", DEVICE_PROGRAM, len(lines), ctypes.addressof(code), ctypes.addressof(licence))
    return kept(bpf(LOAD, head + struct.pack("=IIQII16s", 0, 0, 0, 0, 0, b"attack"))[0])


def denier(mark: int = 0) -> Instructions:
    """Lets through what has major 1 (null, zero and so on), and nothing else; `mark` makes it another program that means the same."""
    return [(MOVE, 0x00, 0, mark), (LOAD_WORD, 0x12, MAJOR, 0), (MOVE, 0x00, 0, 1), (IF_SAME, 0x02, 1, 1), (MOVE, 0x00, 0, 0), (EXIT, 0, 0, 0)]


def attach(group: int, program: int, flags: int = MULTI, instead_of: int = 0) -> None:
    bpf(ATTACH, struct.pack("=IIIII", group, program, DEVICE_ATTACH, flags, instead_of))


def detach(group: int, program: int) -> None:
    bpf(DETACH, struct.pack("=III", group, program, DEVICE_ATTACH))


def attached(group: int) -> list[int]:
    ids = (ctypes.c_uint32 * 64)()
    _, answer = bpf(QUERY, struct.pack("=IIIIQI", group, DEVICE_ATTACH, 0, 0, ctypes.addressof(ids), 64))
    return list(ids[: struct.unpack_from("=I", answer, 24)[0]])


def open_program(number: int) -> int:
    return kept(bpf(OPEN_ID, struct.pack("=I", number))[0])


def device_programs() -> set[int]:
    """The ids of all that are loaded on this machine."""
    found, number = set(), 0
    while True:
        try:
            number = struct.unpack_from("=I", bpf(NEXT_ID, struct.pack("=I", number))[1], 4)[0]
        except OSError:
            return found
        try:
            program = open_program(number)
        except OSError:
            continue  # It was unloaded meanwhile.
        info = ctypes.create_string_buffer(256)
        bpf(INFO, struct.pack("=IIQ", program, 256, ctypes.addressof(info)))
        close_programs()
        if struct.unpack_from("=I", info.raw)[0] == DEVICE_PROGRAM:
            found.add(number)


def deny(group: int, mark: int = 0) -> None:
    """Attaches one more program beside the others, as systemd does."""
    attach(group, load(denier(mark)))


def replace(group: int, mark: int = 0) -> None:
    """Replaces the first program, as runc and crun do. It tries several times, because the guard may replace it too."""
    program = load(denier(mark))
    for _ in range(1000):
        try:
            return attach(group, program, MULTI | REPLACE, open_program(attached(group)[0]))
        except FileNotFoundError:
            continue  # Another process was faster.
    raise OSError("another process is always faster")


def exchange(group: int, mark: int = 0) -> None:
    """Attaches a new program and detaches all others, as old runtimes and libnvidia-container do."""
    before = attached(group)
    attach(group, load(denier(mark)))
    for number in before:
        try:
            detach(group, open_program(number))
        except FileNotFoundError:
            continue


def strip(group: int, mark: int = 0) -> None:
    """Detaches all programs: nothing is denied any more."""
    for number in attached(group):
        try:
            detach(group, open_program(number))
        except FileNotFoundError:
            continue


def fight(group: int, seconds: float) -> None:
    """Attaches the same program again as often as it can."""
    program = load(denier())
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for number in attached(group):
            try:
                attach(group, program, MULTI | REPLACE, open_program(number))
            except OSError:
                pass
        close_programs(but=program)


def burst(group: int, seconds: float) -> None:
    """Loads programs and attaches none; some hundreds a second, as a flood can deadlock a kernel (support/on_kernel.py)."""
    end, mark = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        mark += 1
        load(denier(mark))
        close_programs()
        time.sleep(0.002)


def flap(group: int, seconds: float) -> None:
    """Attaches and detaches one program without a pause."""
    program = load(denier(1))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):  # A guard may have replaced it meanwhile.
            attach(group, program)
            detach(group, program)


def main() -> None:
    kind, path, *number = sys.argv[1:]
    group = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    ways = {"deny": deny, "replace": replace, "exchange": exchange, "strip": strip}
    if kind in ways:
        ways[kind](group, *map(int, number))
    elif kind == "v1":
        for rule in number:
            pathlib.Path(path, "devices.deny").write_text(rule)
    else:
        {"fight": fight, "burst": burst, "flap": flap}[kind](group, *map(float, number))


if __name__ == "__main__":
    main()
