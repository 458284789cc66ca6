"""What the manual pages say about commands and options, and what --help says about them."""

import pathlib
import re
import subprocess
from collections.abc import Iterator

MANUALS = pathlib.Path(__file__).parents[2] / "docs/man"
OPTION = re.compile(r"--[a-z][a-z-]*")


def read_manual(name: str) -> str:
    """A page as text, without its macros; a line .br is an empty line."""
    lines = []
    for line in (MANUALS / name).read_text().splitlines():
        line = re.sub(r"\\f.", "", line).replace("\\-", "-")
        macro, _, arguments = line.partition(" ") if line.startswith(".") else ("", "", line)
        if macro in (".B", ".I", ".BI", ".BR", ".IB", ".IR", ".RB", ".RI"):
            between = " " if macro in (".B", ".I") else ""
            lines.append(between.join(quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', arguments)))
        else:
            lines.append("" if macro == ".br" else line)
    return "\n".join(lines)


def section(page: str, title: str) -> str:
    return page.split(f".SH {title}\n")[1].split("\n.SH ")[0]


def synopses(page: str, program: str) -> dict[str, str]:
    """The command lines by their commands; "a|b" in a command stands for two."""
    found = {}
    for entry in section(page, "SYNOPSIS").split("\n\n"):
        text = " ".join(entry.split()).removeprefix(program).strip()
        words = []
        for word in text.split():
            if not re.fullmatch(r"[a-z|]+", word):
                break
            words.append(word.split("|"))
        paths = [""]
        for choices in words:
            paths = [f"{path} {choice}".strip() for path in paths for choice in choices]
        found.update((path, text) for path in paths)
    return found


def read_help(program: str, *path: str) -> str:
    return subprocess.run([program, *path, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout


def options_of(text: str) -> list[list[str]]:
    """The long names of each option that a help lists, without --help and --version."""
    heads = re.findall(r"^  (-\S+)", text, re.MULTILINE)
    options = [OPTION.findall(head) for head in heads]
    return [names for names in options if names and names[0] not in ("--help", "--version")]


def commands(program: str, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Each command that has no commands below it, or works without them, with its help."""
    text = read_help(program, *path)
    title, below = "", []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            title = line if line.endswith(":") and line[0].isupper() else ""
        elif title not in ("", "Options:", "Positionals:") and (name := re.match(r"  ([a-z]+)(\s\s|$)", line)):
            below.append(name[1])
    usage = next(line for line in text.splitlines() if line.startswith("Usage:"))
    if not below or "..." in usage:
        yield " ".join(path), text
    for name in below:
        yield from commands(program, (*path, name))
