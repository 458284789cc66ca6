#!/usr/bin/env python3
"""Finds TRY(...) inside a braced initializer behind another element.

TRY returns from the middle of an expression. GCC does not destroy the elements that a braced initializer has built by
then: they leak. Take the value first, then write the initializer. Prints one line for each; exit 1 if
there is one.
"""

import pathlib
import re
import sys

OPENERS = {")": "(", "]": "[", "}": "{"}


def without_comments_and_strings(text: str) -> str:
    """The same text, same length, with blanks for comments and the inside of literals."""

    def blank(match: re.Match) -> str:
        found = match.group(0)
        return re.sub(r"[^\n]", " ", found)

    return re.sub(r'//[^\n]*|/\*.*?\*/|R"\((.|\n)*?\)"|"(\\.|[^"\\\n])*"|\'(\\.|[^\'\\\n])+\'', blank, text, flags=re.S)


def enclosing(text: str, at: int) -> tuple[str, int]:
    """The bracket around a place, and where it is; ("", -1) at the outermost level or behind a finished statement."""
    depth = 0
    for place in range(at - 1, -1, -1):
        char = text[place]
        if char in ")]}":
            depth += 1
        elif char in "([{":
            if depth == 0:
                return char, place
            depth -= 1
        elif char == ";" and depth == 0:
            return "", -1
    return "", -1


def is_initializer(text: str, brace: int) -> bool:
    before = text[:brace].rstrip()
    if re.search(r"\b(else|do|try|const|noexcept|override|mutable)$", before) or before.endswith((")", ";", "{", "}", ":")):
        return before.endswith("{") and is_initializer(text, len(before) - 1)
    is_lambda = re.search(r"->\s*[\w:<>,&* ]+$", before)  # with a return type: its braces hold statements
    return not is_lambda and not re.search(r"\b(namespace|class|struct|enum|union)\b[^;{}()]*$", before)


def hazards(text: str) -> list[int]:
    """Places of TRY( that stand behind another element of a braced initializer."""
    text = without_comments_and_strings(text)
    found = []
    for match in re.finditer(r"\bTRY\(", text):
        inner, (bracket, place) = match.start(), enclosing(text, match.start())
        while bracket:
            if bracket == "{":
                if not is_initializer(text, place):
                    break
                if text[place + 1 : inner].strip():
                    found.append(match.start())
                    break
            inner, (bracket, place) = place, enclosing(text, place)
    return found


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    lines = []
    for source in sorted(path for name in ("src", "tests", "bench", "fuzz") for path in (root / name).rglob("*") if path.suffix in (".h", ".cpp")):
        text = source.read_text()
        lines += [f"{source.relative_to(root)}:{text.count(chr(10), 0, at) + 1}: TRY behind another element of a braced initializer" for at in hazards(text)]
    print("\n".join(lines) if lines else "no TRY leaks")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
