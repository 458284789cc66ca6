"""What a reader of the documents may type, and what the documents say comes of it."""

import dataclasses
import pathlib
import re

PROGRAM = r"(?:holdfast|holdfastd|holdfast-kube|holdfast-runtime|systemctl|docker|podman)"
# What a block of commands begins with. A block that begins otherwise is text, which must be claimed as well.
COMMAND = re.compile(rf"(?:{PROGRAM}|ctr|kubectl|install|mkdir|rm|grep|kill|alias|modprobe|\./\w+|tools/\w+|\w+=\S*)(?: |$)")
# In running text and in tables: a program of ours or an engine's with at least one argument.
INLINE = re.compile(rf"`({PROGRAM} [^`]+)`")


@dataclasses.dataclass
class Item:
    """A line to type (`command`), one that running text speaks of (`mention`), a file (`config`), or text that is none of these (`text`)."""

    kind: str
    text: str  # without the comment behind it
    document: str
    line: int
    section: str = ""
    comment: str = ""
    shown: list[str] = dataclasses.field(default_factory=list)  # the output that the document has below the command

    @property
    def where(self) -> str:
        return f"{self.document}:{self.line}"


def split_comment(line: str) -> tuple[str, str]:
    """A comment begins with a # behind a space, outside quotes."""
    quote = ""
    for at, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "#" and (at == 0 or line[at - 1].isspace()):
            return line[:at].rstrip(), line[at + 1 :].strip()
    return line.rstrip(), ""


def read_block(lines: list[str], first: int, language: str, document: str) -> list[Item]:
    if re.match(r"# /\S+\.yaml$", lines[0]):
        return [Item("config", "\n".join(lines[1:]) + "\n", document, first, comment=lines[0][2:])]
    if language == "yaml" or re.match(r"[a-z_]+:$", lines[0]):
        return [Item("config", "\n".join(lines) + "\n", document, first)]
    if lines[0].startswith("# "):
        return [Item("command", lines[0][2:], document, first, shown=lines[1:])]
    if not COMMAND.match(lines[0]):
        return [Item("text", lines[0].strip(), document, first, shown=lines)]
    found = []
    for number, line in enumerate(lines, first):
        if line.strip():
            command, comment = split_comment(line)
            if not command:
                continue  # a sentence among the commands
            found.append(Item("command", command, document, number, comment=comment))
    return found


def read_line(line: str, name: str, number: int) -> list[Item]:
    """A table's first column tells what to type; elsewhere a command is only spoken of."""
    kinds = ["command" if line.startswith(f"| `{text}` |") else "mention" for text in INLINE.findall(line)]
    return [Item(kind, text, name, number) for kind, text in zip(kinds, INLINE.findall(line))]


def read_document(path: pathlib.Path, name: str) -> list[Item]:
    found: list[Item] = []
    block: list[str] | None = None
    language, first, section = "", 0, ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fresh: list[Item] = []
        if line.startswith("```"):
            if block is None:
                block, language, first = [], line[3:], number + 1
            else:
                fresh, block = read_block(block, first, language, name), None
        elif block is not None:
            block.append(line)
        elif line.startswith("## "):
            section = line[3:]
        else:
            fresh = read_line(line, name, number)
        found += [dataclasses.replace(item, section=section) for item in fresh]
    return found
