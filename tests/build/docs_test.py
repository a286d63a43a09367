#!/usr/bin/env python3
"""Shows that docs.py passes a good page and reports a dead link and a README that is too long."""

import tempfile
import unittest
from pathlib import Path

import docs


class Docs(unittest.TestCase):
    def found(self, text, name="README.md"):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "docs").mkdir()
            (root / "docs" / "design.md").write_text("a page", encoding="utf-8")
            (root / name).write_text(text, encoding="utf-8")
            return docs.problems(root, [Path(name)])

    def test_good_page(self):
        self.assertEqual(self.found("[a](docs/design.md#laws) [b](https://example.org/x)\n"
                                    "```\n[c](nowhere.md)\n```\n"), [])

    def test_dead_link(self):
        self.assertEqual(self.found("[a](docs/desing.md)"),
                         ["README.md: the link docs/desing.md leads nowhere"])

    def test_long_readme(self):
        self.assertEqual(self.found("line\n" * 150), [])
        self.assertEqual(self.found("line\n" * 151), ["README.md: 151 lines, at most 150"])
        self.assertEqual(self.found("line\n" * 151, "docs.md"), [])


if __name__ == "__main__":
    unittest.main()
