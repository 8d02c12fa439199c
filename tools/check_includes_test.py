#!/usr/bin/env python3
"""check_includes.py finds what it is for."""

import unittest

import check_includes


class Includes(unittest.TestCase):
    def missing(self, text, **headers):
        texts = {"src/room/file.cpp": text, **{f"src/room/{name}.hpp": header for name, header in headers.items()}}
        return check_includes.Sources(texts).missing("src/room/file.cpp")

    def test_names_without_their_header(self):
        self.assertEqual(self.missing("#include <vector>\nstd::uint32_t a;"), ["cstdint"])
        self.assertEqual(self.missing("auto a = std::max(1, 2); std::vector<int> b;"), ["algorithm", "vector"])

    def test_names_with_it(self):
        self.assertEqual(self.missing("#include <cstdint>\nstd::uint32_t a;"), [])
        self.assertEqual(self.missing("#include <map>\nstd::pair<int, int> a;"), [])

    def test_headers_of_the_project_count(self):
        self.assertEqual(self.missing('#include "room/a.hpp"\nstd::uint32_t a;', a='#include "b.hpp"', b="#include <cstdint>"), [])
        self.assertEqual(self.missing('#include "a.hpp"\nstd::uint32_t a;', a="int a;"), ["cstdint"])

    def test_headers_that_include_each_other(self):
        self.assertEqual(self.missing('#include "a.hpp"\nstd::string a;', a='#include "b.hpp"', b='#include "a.hpp"'), ["string"])

    def test_comments_are_no_use(self):
        self.assertEqual(self.missing("// std::uint32_t\nint a;"), [])


if __name__ == "__main__":
    unittest.main()
