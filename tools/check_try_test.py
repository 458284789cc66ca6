#!/usr/bin/env python3
"""check_try.py finds a TRY that leaks, and no other."""

import sys
import unittest

import check_try

LEAKS = [
    "Result<A> f() { return A{name(), TRY(g())}; }",
    "Result<A> f() { const A made = {text, {1, TRY(g())}}; return made; }",
    "Result<A> f() { return A{text, h(1, TRY(g()))}; }",
    "void f() { list.push_back({text,\n  TRY(g())}); }",
]
FINE = [
    "Result<A> f() { return A{TRY(g())}; }",
    "Result<A> f() { A made = TRY(g()); return made; }",
    "Result<A> f() { if (x) { TRY(g()); } else { TRY(h()); } return {}; }",
    "Result<A> f() { return h(text, TRY(g())); }",
    "struct A { Result<int> f() { int one = 1; return TRY(g()) + one; } };",
    "Result<A> f() { const auto all = [&]() -> Result<int> { return TRY(g()); }; return all(); }",
    "Result<A> f() { return A{text, 1}; }  // A{text, TRY(g())}",
]


class CheckTry(unittest.TestCase):
    def test_finds_leaks(self):
        for text in LEAKS:
            self.assertEqual(len(check_try.hazards(text)), 1, text)

    def test_accepts_the_rest(self):
        for text in FINE:
            self.assertEqual(check_try.hazards(text), [], text)


if __name__ == "__main__":
    sys.exit(unittest.main())
