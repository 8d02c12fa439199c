#!/usr/bin/env python3
"""The check of the documents finds each kind of violation, and accepts what is allowed."""

import pathlib
import tempfile
import unittest

import check_docs


class Documents(unittest.TestCase):
    def violations(self, files):
        """Of a tree with these files: {path: text}."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return check_docs.check(pathlib.Path(folder))

    def test_a_link_to_a_file_is_allowed(self):
        self.assertEqual(self.violations({"docs/a.md": "[b](guide/b.md#part) [top](../README.md)\n",
                                          "docs/guide/b.md": "", "README.md": ""}), [])

    def test_links_elsewhere_and_in_the_document_are_allowed(self):
        self.assertEqual(self.violations({"README.md": "[a](https://example.org/a) [b](#b)\n"}), [])

    def test_a_link_to_nothing_is_not(self):
        found = self.violations({"analyser/docs/a.md": "\nsee [b](b.md)\n"})
        self.assertEqual(len(found), 1)
        self.assertIn("a.md:2: the link to b.md leads nowhere", found[0])

    def test_links_in_two_lines_and_by_reference_are_seen(self):
        self.assertEqual(len(self.violations({"README.md": "[see\nb](b.md)\n\n[c]: c.md\n"})), 2)

    def test_a_link_in_code_is_no_link(self):
        self.assertEqual(self.violations({"README.md": "```\n[a](b)\n```\n`[a](b)`\n"}), [])

    def test_a_document_within_its_limit_is_allowed(self):
        self.assertEqual(self.violations({"README.md": "word " * 400}), [])

    def test_a_document_beyond_its_limit_is_not(self):
        for name, limit in (("README.md", 400), ("docs/ARCHITECTURE.md", 2000), ("docs/GLOSSARY.md", 600),
                            ("docs/guide/a.md", 500), ("docs/internals/a.md", 900),
                            ("CONTRIBUTING.md", 700), ("analyser/docs/a.md", 2500)):
            found = self.violations({name: "word " * (limit + 1)})
            self.assertEqual(len(found), 1, name)
            self.assertIn(f"{limit + 1} words", found[0])
            self.assertIn(f"limit is {limit}", found[0])

    def test_documents_with_a_limit_together_are_added_up(self):
        found = self.violations({"docs/STYLE.md": "word " * 350, "CONTRIBUTING.md": "word " * 351})
        self.assertEqual(len(found), 1)
        self.assertIn("701 words", found[0])

    def test_sources_from_the_top_and_from_src_are_found(self):
        self.assertEqual(self.violations({"docs/a.md": "`base/a.hpp` `src/base/a.hpp` `warren/b.h`\n",
                                          "src/base/a.hpp": "", "include/warren/b.h": ""}), [])

    def test_a_source_that_is_not_there_is_refused(self):
        found = self.violations({"docs/a.md": "`base/b.hpp`\n", "src/base/a.hpp": ""})
        self.assertEqual(len(found), 1)
        self.assertIn("a.md:1: there is no file base/b.hpp", found[0])

    def test_sources_in_the_table_of_rooms_are_relative_to_the_room(self):
        row = "| `image` | … | `libc/a.hpp` |\n"
        self.assertEqual(self.violations({"docs/a.md": row, "src/image/libc/a.hpp": ""}), [])
        self.assertEqual(len(self.violations({"docs/a.md": row, "src/other/libc/a.hpp": ""})), 1)

    def test_sources_of_the_analyser_are_relative_to_it_in_its_documents(self):
        files = {"analyser/counts/a.hpp": ""}
        self.assertEqual(self.violations({"analyser/docs/a.md": "`counts/a.hpp`\n", **files}), [])
        self.assertEqual(len(self.violations({"docs/a.md": "`counts/a.hpp`\n", **files})), 1)

    def test_commands_placeholders_and_built_files_are_no_sources(self):
        self.assertEqual(self.violations({"docs/a.md": "`mpicc a/b.c -o b` `tests/THING_test.cpp` "
                                                       "`src/CHAPTER.hpp` `build/include/mpi.h` `a.c`\n"}), [])


if __name__ == "__main__":
    unittest.main()
