"""The HTML report is one file that holds everything, and nothing in a recording can break it."""

import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path[:0] = [sys.argv.pop(1), os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402

import recordings as made  # noqa: E402
from warren.locality import __main__ as program, analysis, html_report, trace as traces  # noqa: E402


def facts_of(text):
    return json.loads(re.search(r'id="facts">(.*?)</script>', text, re.S)[1])


def pages_of(text, name, rows):
    """The columns that page_map.js unpacks."""
    packed = zlib.decompress(base64.b64decode(re.search(rf'id="{name}">(.*?)</script>', text, re.S)[1]))
    columns = [np.cumsum(np.frombuffer(packed, "<u4", rows, 4 * rows * i), dtype="<u4") for i in range(5)]
    return columns, np.frombuffer(packed, "u1", offset=20 * rows).reshape(-1, rows)


class Html(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)

    def recording(self, name, command="./program", threads=4):
        base = 1 << 40
        dense = np.zeros((40, threads), int)
        dense[np.arange(40), np.repeat(np.arange(threads), 40 // threads)] = np.arange(1, 41) * 100
        made.write_process(self.folder / name / "process-1", counts=made.counts(dense, base, 1),
                           first=made.first(np.zeros(40), base, 1), threads=made.threads(threads),
                           allocations=[made.allocation(base, 40 * 4096)], info={"command": command})
        return str(self.folder / name)

    def report(self, *arguments):
        out = self.folder / "report.html"
        self.assertEqual(program.main(["report", *arguments, "--quiet", "--html", str(out)]), 0)
        return out.read_text(encoding="utf-8")

    def test_pages_are_what_was_recorded(self):
        text = self.report(self.recording("run"))
        facts = facts_of(text)
        self.assertEqual(facts["pages"]["rows"], 40)
        self.assertEqual(facts["pages"]["ranges"], [[0, 0, 40]])
        (low, high, _, first, best), bytes_ = pages_of(text, "pages", 40)
        page = (high.astype("<u8") << np.uint64(32)) + low
        self.assertEqual(page.tolist(), [(1 << 28) + i for i in range(40)])
        self.assertEqual(first.tolist(), [0] * 40)
        self.assertEqual(best.tolist(), np.repeat(np.arange(4), 10).tolist())
        self.assertEqual(bytes_[0].tolist(), [0] * 10 + [255] * 30)  # wrong first touches
        self.assertEqual(bytes_[4].max(), 254)
        self.assertEqual(np.count_nonzero(bytes_[1:], axis=1).tolist(), [10] * 4)

    def test_first_touches_are_drawn_where_accesses_are_not_known(self):
        found = analysis.Analysis(traces.synthetic(np.zeros((4, 2), int), [0, 1, 1, -1]))
        pages, _ = html_report._pages(found, 1000)
        heat = np.frombuffer(zlib.decompress(base64.b64decode(pages)), "u1", offset=4 * 21)
        self.assertEqual((heat.reshape(2, 4) > 0).tolist(), [[True, False, False, False],
                                                             [False, True, True, False]])

    def test_sources_that_are_no_files_are_not_read(self):
        found = analysis.Analysis(traces.synthetic([[1]], [0]))
        pipe = str(self.folder / "pipe")
        os.mkfifo(pipe)
        for path in (pipe, "/dev/zero"):
            found.structures[0].file, found.structures[0].line = path, 1
            self.assertFalse(html_report._sources(found, [0])[path]["there"])

    def test_large_recordings_share_rows(self):
        found = analysis.Analysis(traces.synthetic(np.eye(100, 3, dtype=int) + 1, np.zeros(100)))
        pages, facts = html_report._pages(found, 90)
        self.assertEqual((facts["rows"], facts["per_row"]), (25, 4))
        self.assertEqual(len(zlib.decompress(base64.b64decode(pages))), 25 * (20 + 1 + 3))

    def test_no_network_and_no_escape_from_the_data(self):
        text = self.report(self.recording("run", "</script><script>alert(1)</script><!-- <img src=x>"))
        self.assertEqual(facts_of(text)["title"], "</script><script>alert(1)</script><!-- <img src=x>")
        self.assertEqual(text.count("</script>"), 3)  # facts, pages, the script itself
        outside = re.sub(r'<script type="application.*?</script>', "", text, flags=re.S)
        self.assertNotRegex(outside, r"https?://|\bsrc=|@import|url\(")
        self.assertNotIn("innerHTML", outside)

    def test_comparison_and_another_machine(self):
        machine = self.folder / "machine.json"
        machine.write_text(json.dumps({"machine": {
            "type": "Machine",
            "memory": [{"type": "NUMANode", "os_index": n, "cpus": f"{2 * n}-{2 * n + 1}",
                        "bytes": 1 << 40} for n in (0, 1)],
            "children": [{"type": "PU", "os_index": p, "cpus": str(p)} for p in range(4)]}}))
        text = self.report(self.recording("before"), "--compare", self.recording("after", threads=2),
                           "--what-if", str(machine))
        facts = facts_of(text)
        self.assertEqual(len(facts["after"]["threads"]["thread"]), 2)
        self.assertEqual([one["policy"] for one in facts["what_if"]["results"]],
                         ["first touch", "huge pages", "interleave", "balanced", "optimal"])
        self.assertEqual(facts["what_if"]["results"][3]["local_share"], 1.0)
        pages_of(text, "pages_after", 40)

    @unittest.skipUnless(shutil.which("node"), "no node to parse the script")
    def test_the_scripts_parse(self):
        for name in html_report.SCRIPTS:
            done = subprocess.run(["node", "--check", html_report.ASSETS / name], check=False,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
