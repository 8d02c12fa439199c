#!/usr/bin/env python3
"""The runner of documented commands finds what fails, and nothing is left out in silence."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import run_documented_commands as runner


class Commands(unittest.TestCase):
    def run_text(self, text, limit_s=20):
        """What running a page with this text returns, and what it prints."""
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.md")
            page.write_text(text, encoding="utf-8")
            there = {"dynamorio": False, "numa": True}
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                result = runner.run_page(page, pathlib.Path(folder), there, limit_s)
            return result, printed.getvalue()

    def assert_refused(self, text, line, reason):
        (run, failed, _), printed = self.run_text(text)
        self.assertEqual((run, failed), (0, 1))
        self.assertIn(f"page.md:{line}: FAILED: {reason}", printed)

    def test_a_block_that_succeeds_is_counted(self):
        self.assertEqual(self.run_text("a\n```sh\ntrue\n```\n")[0], (1, 0, []))

    def test_a_block_that_fails_is_named_with_its_line_and_output(self):
        result, printed = self.run_text("```sh\ntrue\n```\n\n```sh\necho because; false; true\n```\n")
        self.assertEqual(result, (2, 1, []))
        self.assertIn("page.md:5: FAILED: status 1\nbecause", printed)

    def test_a_variable_that_is_not_set_fails(self):
        self.assertEqual(self.run_text("```sh\necho $nobody_sets_this\n```\n")[0], (1, 1, []))

    def test_a_block_that_does_not_end_fails_with_what_it_started(self):
        result, printed = self.run_text("```sh\nsleep 50 & sleep 50\n```\n", limit_s=0.5)
        self.assertEqual(result, (1, 1, []))
        self.assertIn("page.md:1: FAILED: not ended after 0.5 s", printed)

    def test_what_a_block_leaves_running_holds_up_nobody(self):
        self.assertEqual(self.run_text("```sh\nsleep 50 &\n```\n")[0], (1, 0, []))

    def test_named_blocks_become_files_of_the_page(self):
        text = ("```c\n/* a.c */\nint a;\n```\n```python\n# b.py\n```\n```c\nint nameless;\n```\n"
                "```sh\ngrep -q 'int a;' a.c; test -f b.py; echo > made\n```\n```sh\ntest -f made\n```\n")
        self.assertEqual(self.run_text(text)[0], (2, 0, []))

    def test_a_block_whose_need_is_missing_is_left_out_aloud(self):
        (run, failed, left_out), _ = self.run_text("<!-- needs: numa, dynamorio -->\n```sh\nfalse\n```\n")
        self.assertEqual((run, failed), (0, 0))
        self.assertRegex(left_out[0], "page.md:2: LEFT OUT: missing: dynamorio$")

    def test_a_block_whose_need_is_there_is_run(self):
        self.assertEqual(self.run_text("<!-- needs: numa -->\n\n```sh\nfalse\n```\n")[0], (1, 1, []))

    def test_a_block_that_is_not_run_is_left_out_aloud(self):
        (run, failed, left_out), _ = self.run_text("<!-- not run: too large -->\n```sh\nfalse\n```\n")
        self.assertEqual((run, failed), (0, 0))
        self.assertRegex(left_out[0], "page.md:2: LEFT OUT: not run: too large$")

    def test_a_mark_is_for_one_block(self):
        text = "<!-- not run: too large -->\n```sh\nfalse\n```\n```sh\nfalse\n```\n"
        self.assertEqual(self.run_text(text)[0][:2], (1, 1))

    def test_mistakes_that_would_hide_commands_are_refused(self):
        self.assert_refused("<!-- needs: a moon -->\n```sh\ntrue\n```\n", 2, "'a moon' can't be needed")
        self.assert_refused("<!-- not run -->\n```sh\ntrue\n```\n", 1, "write <!-- needs")
        self.assert_refused("\n<!-- needs: numa -->\nText.\n\n```sh\ntrue\n```\n", 2, "this comment stands")
        self.assert_refused("<!-- needs: numa -->\n```c\n```\n", 1, "this comment stands")
        self.assert_refused("```sh\ntrue\n", 1, "this block has no end")
        self.assert_refused("```bash\ntrue\n```\n", 1, "begin a block of commands with ```sh")
        self.assert_refused("- a\n  ```sh\n  true\n  ```\n", 2, "begin a block of commands with ```sh")


if __name__ == "__main__":
    unittest.main()
