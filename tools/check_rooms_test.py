#!/usr/bin/env python3
"""The check of the rooms finds each kind of violation, and accepts what is allowed."""

import pathlib
import tempfile
import unittest

import check_rooms


class Rooms(unittest.TestCase):
    def violations(self, **files):
        """Of a tree with these files: room__name='included header'."""
        with tempfile.TemporaryDirectory() as folder:
            for name, included in files.items():
                path = pathlib.Path(folder, name.replace("__", "/") + ".hpp")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f'#include <atomic>\n#include "{included}"\n' if included else "")
            return check_rooms.check(pathlib.Path(folder))

    def test_a_room_below_is_allowed(self):
        self.assertEqual(self.violations(mpi__comm__group="base/error.hpp", base__error=""), [])

    def test_generated_and_public_headers_are_allowed(self):
        self.assertEqual(self.violations(mpi__comm__group="mpi.h", base__version="warren/version.h"), [])

    def test_a_room_above_is_not(self):
        found = self.violations(base__error="mpi/comm/group.hpp", mpi__comm__group="")
        self.assertEqual(len(found), 1)
        self.assertIn("mpi/comm/ comes after base/", found[0])
        self.assertIn("error.hpp:2", found[0])

    def test_a_folder_in_a_room_belongs_to_it(self):
        self.assertEqual(self.violations(image__libc__exit="image/image.hpp"), [])
        self.assertIn("launch/ uses", self.violations(launch__host__main="mpi/coll/op.hpp")[0])

    def test_nobody_includes_the_launcher(self):
        found = self.violations(mpi__entry__init="launch/mpiexec/job.hpp")
        self.assertIn("no room includes launch/", found[0])

    def test_the_launcher_uses_low_rooms_only(self):
        self.assertEqual(self.violations(launch__mpiexec__job="mpi/job/segment.hpp"), [])
        self.assertIn("up to mpi/rank/", self.violations(launch__mpiexec__job="mpi/message/engine.hpp")[0])

    def test_a_document_with_another_order_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            document = pathlib.Path(folder, "rooms.md")
            document.write_text("".join(f"| `{room}` | … |\n" for room in check_rooms.ORDER))
            self.assertEqual(check_rooms.check_document(document), [])
            document.write_text("".join(f"| `{room}` | … |\n" for room in reversed(check_rooms.ORDER)))
            self.assertEqual(len(check_rooms.check_document(document)), 1)

    def test_headers_make_no_ring(self):
        found = self.violations(base__a="base/b.hpp", base__b="base/a.hpp")
        self.assertIn("base/a.hpp -> base/b.hpp -> base/a.hpp", found[0])

    def test_relative_includes_are_refused(self):
        self.assertIn("relative to src/", self.violations(base__a="../base/b.hpp")[0])

    def test_an_unknown_room_is_refused(self):
        self.assertIn("is no room of", self.violations(cellar__a="")[0])


if __name__ == "__main__":
    unittest.main()
