#!/usr/bin/env python3
"""The check of sizes finds what is too large, and exceptions that are not needed."""

import pathlib
import tempfile
import unittest

import check_sizes


class Sizes(unittest.TestCase):
    def sizes(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder).resolve()
            path = top / name
            path.parent.mkdir(parents=True)
            path.write_text(text)
            return {(kind, what): size
                    for sizes in (check_sizes.sizes_of_files, check_sizes.sizes_of_functions)
                    for kind, what, size in sizes(top, [name])}

    def test_lines_of_files_are_counted(self):
        self.assertEqual(self.sizes("src/base/a.hpp", "\n" * 601)["file", "src/base/a.hpp"], 601)

    def test_functions_are_counted_with_their_heads(self):
        text = "namespace warren::launch {\nint\nf(int a,\n  int b) {\n" + "    a += b;\n" * 69 + "}\n}\n"
        self.assertEqual(self.sizes("src/base/a.cpp", text)["function", "src/base/a.cpp:f"], 72)

    def test_python_and_tests_are_read(self):
        found = self.sizes("tools/a.py", "def f():\n" + "    print()\n" * 80)
        self.assertEqual(found["function", "tools/a.py:f"], 81)
        found = self.sizes("src/base/a_test.cpp", "TEST(Group, holds) {\n" + "    f();\n" * 80 + "}\n")
        self.assertEqual(found["function", "src/base/a_test.cpp:Group,holds"], 82)

    def test_member_functions_are_counted_in_and_out_of_the_class(self):
        text = ("namespace warren::launch {\nclass Job {\n  public:\n    int a() { return 1; }\n"
                "    int b();\n};\nint Job::b() {\n    return 2;\n}\nint free() {\n    return 3;\n}\n}\n")
        self.assertEqual(self.sizes("src/launch/job.cpp", text)["class", "src/launch/:Job"], 2)
        self.assertFalse([key for key in self.sizes("src/base/job.cpp", text) if key[0] == "class"])

    def test_what_is_over_its_limit_is_told(self):
        sizes = [("file", "a.cpp", 601), ("file", "b.cpp", 600), ("function", "b.cpp:f", 71),
                 ("function", "b.cpp:f", 3), ("class", "src/launch/:Job", 41)]
        told = list(check_sizes.violations(sizes, {}))
        self.assertEqual(len(told), 3)
        self.assertIn("a.cpp: 601 lines, the limit of this file is 600", told)
        self.assertIn("b.cpp:f: 71 lines, the limit of this function is 70", told)
        self.assertIn("src/launch/:Job: 41 member functions, the limit of this class is 40", told)

    def test_an_exception_has_a_limit_too(self):
        sizes = [("file", "a.cpp", 650)]
        self.assertEqual(list(check_sizes.violations(sizes, {("file", "a.cpp"): 650})), [])
        self.assertIn("the limit of this file is 640",
                      next(check_sizes.violations(sizes, {("file", "a.cpp"): 640})))

    def test_an_exception_that_is_not_needed_is_told(self):
        for sizes in ([("file", "a.cpp", 600)], []):
            told = list(check_sizes.violations(sizes, {("file", "a.cpp"): 650}))
            self.assertEqual(len(told), 1)
            self.assertIn("a.cpp: needs no limit of its own", told[0])

    def test_an_exception_needs_a_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "exceptions.tsv")
            path.write_text("# kind, name\nfile\ta.cpp\t650\twhy not\n")
            self.assertEqual(check_sizes.read_exceptions(path), {("file", "a.cpp"): 650})
            path.write_text("file\ta.cpp\t650\t\n")
            with self.assertRaises(ValueError):
                check_sizes.read_exceptions(path)


if __name__ == "__main__":
    unittest.main()
