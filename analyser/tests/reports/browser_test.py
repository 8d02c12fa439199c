"""The HTML report in a browser, wide and as on a phone: every view is there, reacts to what one does with
it, and the console says nothing. Skipped (77) without Chromium.

    browser_test.py …/python [--screenshots FOLDER]
"""

import os
import pathlib
import sys
import tempfile
import time
import unittest

sys.path[:0] = [sys.argv.pop(1), os.path.dirname(os.path.abspath(__file__))]
SHOTS = None
if "--screenshots" in sys.argv:
    at = sys.argv.index("--screenshots")
    SHOTS = pathlib.Path(sys.argv[at + 1])
    del sys.argv[at:at + 2]

import numpy as np  # noqa: E402

import browser as browsers  # noqa: E402
import recordings as made  # noqa: E402
from warren.locality import (advice, analysis, html_report, lines, machine, trace as traces,  # noqa: E402
                             what_if)

THREADS = 4
VIEWS = ["overview", "structures", "pages-view", "threads", "source", "elsewhere", "comparison"]


def analysed(folder, first_threads, source):
    """Two blocks, of 40 and 24 pages; of the first each thread uses a quarter."""
    base, second = 1 << 40, (1 << 40) + 40 * 4096
    dense = np.full((64, THREADS), 7)
    dense[:40] = 0
    dense[np.arange(40), np.arange(40) // 10] = np.arange(1, 41) * 100
    matrix = [{"interval": 1, "producer": a, "consumer": b, "events": 10 + a, "bytes": 1000 * (a + 1)}
              for a in range(THREADS) for b in range(THREADS) if a != b]
    made.write_process(
        folder / "process-1",
        counts=np.concatenate([made.counts(dense[:40], base, 1), made.counts(dense[40:], second, 2)]),
        first=np.concatenate([made.first(first_threads, base, 1), made.first(np.zeros(24), second, 2)]),
        communication=matrix, threads=made.threads(THREADS, [400, 300, 200, 100]),
        allocations=[made.allocation(base, 40 * 4096), made.allocation(second, 24 * 4096)],
        names=[{"event": 1, "tid": 100, "address": base, "time_ns": 3, "name": b"field"},
               {"event": 1, "tid": 100, "address": second, "time_ns": 3, "name": b"table"}])
    found = analysis.Analysis.of(str(folder))
    # As if the program had been built with -g.
    for line, one in enumerate(found.structures[:2], 5):
        one.file, one.line, one.function = str(source), line, "main"
    for site in np.unique(found.trace.first_site).tolist():
        found._first_places[site] = (f"{source.name}:20", "main", str(source), 20)
    return found


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        folder = pathlib.Path(place.name)
        source = folder / "program.c"
        source.write_text("".join(f"int line_{number};\n" for number in range(1, 200)))
        before = analysed(folder / "before", np.zeros(40), source)
        after = analysed(folder / "after", np.arange(40) // 10, source)
        where = machine.invented(2, 2)
        results = what_if.predict(before.trace, where, "compact")
        cls.path = folder / "report.html"
        html_report.write(before, advice.advise(before), cls.path, after, where, "compact", results)

    def opened(self, *size, **more):
        page = browsers.Browser(*size, **more)
        page.__enter__()
        self.addCleanup(page.__exit__)
        page.open(self.path)
        return page

    def rectangle(self, page, selector):
        """x, y, width, height on the screen, to which it is scrolled."""
        page.evaluate(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        page.settle()
        return page.evaluate(f"(box => [box.x, box.y, box.width, box.height])"
                             f"(document.querySelector({selector!r}).getBoundingClientRect())")

    def click(self, page, selector, **more):
        x, y, width, height = self.rectangle(page, selector)
        page.click(x + width / 2, y + height / 2, **more)
        page.settle()

    def text(self, page, selector):
        return page.evaluate(f"document.querySelector({selector!r}).textContent")

    def all_views(self, page, name):
        self.assertEqual(page.evaluate("[...document.querySelectorAll('main section')].map(s => s.id)"),
                         VIEWS)
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"),
                             page.evaluate("document.documentElement.clientWidth"))
        for view in VIEWS:
            _, _, width, height = self.rectangle(page, "#" + view)
            self.assertGreater(min(width, height), 50, view)
            if SHOTS:
                page.evaluate(f"document.getElementById({view!r}).scrollIntoView()")
                page.settle()
                page.screenshot(SHOTS / f"{name}-{view}.png")
        self.assertEqual(page.problems, [])

    def beyond_the_edge(self, page):
        """What of tables, but for those of nodes, one sees by scrolling only."""
        return page.evaluate("[...document.querySelectorAll('main table:not(.matrix) :is(th, td)')].filter(cell => "
                             "cell.getBoundingClientRect().right > Math.min(innerWidth, "
                             "cell.closest('.scroll').getBoundingClientRect().right + 1)).map(cell => cell.textContent)")

    def test_cache_lines(self):
        trace = traces.synthetic([[100, 100], [100, 100]], [0, 0], 64)
        trace.writes = trace.accesses
        trace.line_use = np.array([(0, 0, -1, 0, 0xff), (0, 1, -1, 0xf0000, 0xff00),
                                   (1, 0, -1, 0, 0xff), (1, 1, -1, 0x80, 0)], lines.USE)
        found = analysis.Analysis(trace)
        path = self.path.with_name("lines.html")
        html_report.write(found, advice.advise(found), path)
        for width, name in ((1280, "wide"), (390, "narrow")):
            page = browsers.Browser(width, 800)
            page.__enter__()
            self.addCleanup(page.__exit__)
            page.open(path)
            self.assertEqual(page.evaluate("[...document.querySelectorAll('#lines tbody tr')].map("
                                           "row => row.cells[3].textContent)"), ["falsely", "truly"])
            self.assertEqual(page.evaluate("document.querySelectorAll('.line-bytes')[1].querySelectorAll("
                                           "'.striped').length"), 1)
            self.assertIn("T1 writes 8-15", self.text(page, "#lines tbody"))
            # A header begins or ends where what is below it does.
            self.assertEqual(page.evaluate("getComputedStyle(document.querySelector('#lines th:last-child')).textAlign"),
                             "left")
            x, y, width_of, height = self.rectangle(page, "#lines .line-bytes i:nth-child(10)")
            self.assertGreater(height, 8)
            page.mouse("mouseMoved", x + width_of / 2, y + height / 2)
            page.settle()
            self.assertEqual(self.text(page, "#tip"), "byte 9, written by T1")
            self.assertEqual(self.text(page, "#views .here"), "Cache lines")
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"),
                                 page.evaluate("document.documentElement.clientWidth"))
            self.assertEqual(self.beyond_the_edge(page), [])
            self.assertEqual(page.problems, [])
            if SHOTS:
                page.screenshot(SHOTS / f"{name}-lines.png")

    def test_views_on_a_wide_screen(self):
        page = self.opened(1280, 800)
        self.all_views(page, "wide")
        self.assertEqual(self.beyond_the_edge(page), [])
        self.colors(page)
        self.rows(page)
        for number, view in enumerate(VIEWS):
            self.click(page, f"#views a:nth-child({number + 1})")
            self.assertEqual(page.evaluate("location.hash"), "#" + view)
            self.assertEqual(page.evaluate(f"document.querySelectorAll('#views a')[{number}].className"), "here")
        self.structures(page)
        self.pages(page)
        self.threads(page)
        self.sources(page)
        self.elsewhere_and_comparison(page)
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        color = "document.querySelector('#heat canvas').toDataURL() + " \
            "document.querySelector('#heat .legend i').style.background"
        light = page.evaluate(color)
        page.call("Emulation.setEmulatedMedia", features=dark)
        page.settle()
        self.assertNotEqual(page.evaluate(color), light)
        self.all_views(page, "dark")
        self.colors(page)

    def colors(self, page):
        """More accesses stand out more, what is wrong looks like no thread."""
        def light(color):
            share = color / 255
            linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
            return linear @ [0.2126, 0.7152, 0.0722]

        table = np.array(page.evaluate("[...heatTable]"), "<u4").view("u1").reshape(256, 4)[:, :3]
        contrast = (np.maximum(light(table), light(table[0])) + 0.05) / (np.minimum(light(table), light(table[0])) + 0.05)
        self.assertGreater(contrast[1], 1.08)
        self.assertGreater(contrast[128], 2)
        self.assertGreater(contrast[255], 10)
        self.assertTrue((np.diff(contrast[1:]) > -0.02).all())
        of_threads = np.array([list(bytes.fromhex(color[1:])) for color in
                               page.evaluate("Array.from({length: 256}, (_, thread) => threadColor(thread))")])
        for name in ("--wrong", "--partly-wrong"):
            color = page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('{name}').trim()")
            self.assertGreater(np.abs(of_threads - list(bytes.fromhex(color[1:]))).sum(1).min(), 90, name)

    def rows(self, page):
        """Rows have names, beside what is drawn; nothing covers it."""
        self.assertEqual(page.evaluate("[...document.querySelectorAll('#heat .gutter span')].map(s => s.textContent)"),
                         ["T0", "T1", "T2", "T3", "first touch", "main user", "wrong"])
        beside = "[...document.querySelectorAll('%s .gutter span')].every(label => label.getBoundingClientRect().right " \
            "<= document.querySelector('%s canvas').getBoundingClientRect().left)"
        for where in ("#heat", "#communication"):
            self.assertTrue(page.evaluate(beside % (where, where)), where)
        for kind in ("gutter", "columns"):
            names = f"[...document.querySelectorAll('#communication .{kind} span')].map(s => s.textContent)"
            self.assertEqual(page.evaluate(names), ["T0", "T1", "T2", "T3"])
        # In each strip a column has one colour, that of the thread or of what is wrong.
        # (From a copy: Chromium warns of what is read often.)
        strips = page.evaluate("""(map => {
            const copy = new OffscreenCanvas(map.canvas.width, map.canvas.height).getContext("2d", {willReadFrequently: true});
            copy.drawImage(map.canvas, 0, 0);
            return [0, 1, 2].map(index => [...copy.getImageData(0, map.heatTop + map.heatHigh + map.gap +
                index * (map.strip + map.gap), map.canvas.width, map.strip).data]);
        })(pageMap)""")
        wide = page.evaluate("pageMap.canvas.width")
        threads = [list(bytes.fromhex(color[1:])) for color in page.evaluate("[0, 1, 2, 3].map(threadColor)")]
        for index, strip in enumerate(strips):
            strip = np.array(strip).reshape(-1, wide, 4)[:, :, :3]
            self.assertTrue((strip == strip[:1]).all(), index)
            if index < 2:
                self.assertEqual(strip[0, 2].tolist(), threads[0])
        self.assertEqual(page.evaluate("[...document.querySelectorAll('#heat .scale b')].map(b => b.textContent)"),
                         ["0", "10", "100", "1.0 k", "4.0 k"])
        self.assertEqual(page.evaluate("document.querySelector('#communication .scale b:last-child').textContent"), "3.9 KiB")

    def test_labels_of_many_threads(self):
        dense = np.zeros((960, 96), int)
        dense[np.arange(960), np.arange(960) // 10] = np.arange(1, 961) * 1000
        dense[:, 0] += 5
        found = analysis.Analysis(traces.synthetic(dense, np.zeros(960, int)))
        path = self.path.with_name("many.html")
        html_report.write(found, advice.advise(found), path)
        for width, scale, name in ((1280, 1, "wide"), (390, 2, "phone")):
            page = browsers.Browser(width, 844, scale=scale, mobile=scale == 2)
            page.__enter__()
            self.addCleanup(page.__exit__)
            page.open(path)
            for labels, side in (("#heat .gutter .thread", "y"), ("#communication .gutter span", "y"),
                                 ("#communication .columns span", "x")):
                begins, ends = np.array(page.evaluate(
                    f"[...document.querySelectorAll('{labels}')].map(label => label.getBoundingClientRect())"
                    f".map(box => [box.{side}, box.{side} + box.{'width' if side == 'x' else 'height'}])")).T
                self.assertGreater(len(begins), 5, labels)
                self.assertGreater((begins[1:] - ends[:-1]).min(), -2, labels)
            self.assertEqual(page.evaluate("document.querySelectorAll('#heat .gutter .thread')[1].textContent"), "T4")
            for scales in ("#heat .scale b", "#communication .scale b"):
                begins, ends = np.array(page.evaluate(
                    f"[...document.querySelectorAll('{scales}')].map(b => b.getBoundingClientRect())"
                    ".map(box => [box.x, box.right])")).T
                self.assertGreater((begins[1:] - ends[:-1]).min(), 0, scales)
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"),
                                 page.evaluate("document.documentElement.clientWidth"))
            self.assertEqual(page.problems, [])
            if SHOTS:
                for view in ("heat", "communication"):
                    page.evaluate(f"scrollTo(0, document.querySelector('#{view}').getBoundingClientRect().top + scrollY - 90)")
                    page.settle()
                    page.screenshot(SHOTS / f"{name}-many-{view}.png")

    def test_long_names_leave_room(self):
        trace = traces.synthetic(np.eye(8, 2, dtype=int) + 1, np.zeros(8))
        trace.process_names = ["a-computer-with-a-long-name.example-12345678", "another"]
        found = analysis.Analysis(trace)
        path = self.path.with_name("long.html")
        html_report.write(found, advice.advise(found), path)
        page = browsers.Browser(390, 844, scale=2, mobile=True)
        page.__enter__()
        self.addCleanup(page.__exit__)
        page.open(path)
        for drawn, least in (("#loads .track", 120), ("#heat canvas", 220), ("#communication canvas", 220)):
            _, _, width, _ = self.rectangle(page, drawn)
            self.assertGreater(width, least, drawn)
        self.assertEqual(page.evaluate("[...document.querySelectorAll('#communication .gutter span')].map(s => s.textContent)"),
                         ["…ple-12345678.T0", "…ple-12345678.T1"])
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"),
                             page.evaluate("document.documentElement.clientWidth"))
        self.assertEqual(page.problems, [])
        if SHOTS:
            page.screenshot(SHOTS / "phone-long-names.png")

    def test_a_million_pages_open_soon(self):
        made_of, threads = 1_000_000, 8
        chance = np.random.default_rng(1)
        dense = np.zeros((made_of, threads), int)
        dense[np.arange(made_of), np.arange(made_of) * threads // made_of] = chance.integers(1, 10000, made_of)
        dense[np.arange(made_of), chance.integers(0, threads, made_of)] += 3
        found = analysis.Analysis(traces.synthetic(dense, chance.integers(0, threads, made_of)))
        path = self.path.with_name("million.html")
        html_report.write(found, advice.advise(found), path)
        page = browsers.Browser(1280, 800)
        page.__enter__()
        self.addCleanup(page.__exit__)
        began = time.monotonic()
        page.open(path)
        took = time.monotonic() - began
        self.assertIn("pages 0 to 1.0 M", self.text(page, "#heat .tools span"))
        print(f"a million pages, {path.stat().st_size >> 20} MiB, opened in {took:.2f} s; wanted: 3 s")
        self.assertLess(took, 10)  # of slow and busy machines
        self.assertEqual(page.problems, [])

    def structures(self, page):
        names = "[...document.querySelectorAll('#structure-table tbody .name')].map(b => b.textContent)"
        self.assertEqual(page.evaluate(names)[:2], ["field", "table"])
        self.click(page, "#structure-table th:nth-child(1) button")
        self.click(page, "#structure-table th:nth-child(1) button")
        self.assertEqual(page.evaluate(names), sorted(page.evaluate(names), reverse=True))
        self.click(page, "#filter")
        for key in "tab":
            page.key(key)
        self.assertEqual(page.evaluate(names), ["table"])
        self.assertEqual(self.text(page, "#structure-count"), "1 of 2")
        x, y, width, height = self.rectangle(page, "#structure-table .bar")
        page.mouse("mouseMoved", x + width / 2, y + height / 2)
        self.assertIn("T0 100 %", self.text(page, "#tip"))
        self.click(page, "#structure-table .name")  # shows its pages
        self.assertEqual(page.evaluate("document.querySelector('#heat select').value"), "1")
        self.assertIn("pages 40 to 64", self.text(page, "#heat .tools span"))
        page.evaluate("document.getElementById('filter').value = '', structureTable()")

    def pages(self, page):
        shown = "#heat .tools span"
        self.click(page, "#heat [aria-label='all pages']")
        self.assertEqual(self.text(page, shown), "pages 0 to 64")
        self.assertEqual(page.evaluate("document.querySelector('#heat select').value"), "-1")
        self.click(page, "#heat [aria-label='closer']")
        self.assertEqual(self.text(page, shown), "pages 16 to 48")
        self.click(page, "#heat [aria-label='further away']")
        self.assertEqual(self.text(page, shown), "pages 0 to 64")
        x, y, width, height = self.rectangle(page, "#heat canvas")
        page.mouse("mouseMoved", x + 0.01 * width, y + height / 2)
        told = self.text(page, "#tip")
        self.assertIn("touched first by T0", told)
        self.assertIn("0x10000000000", told)
        self.assertEqual(page.evaluate("document.getElementById('tip').style.display"), "block")
        page.mouse("mouseWheel", x + width / 2, y + height / 2, deltaX=0, deltaY=-300)
        page.wait("document.querySelector('#heat .tools span').textContent !== 'pages 0 to 64'")
        zoomed = self.text(page, shown)
        page.mouse("mousePressed", x + width / 2, y + height / 2, button="left", clickCount=1)
        page.mouse("mouseMoved", x + width / 4, y + height / 2, button="left", buttons=1)
        page.mouse("mouseReleased", x + width / 4, y + height / 2, button="left", clickCount=1)
        page.settle()
        self.assertNotEqual(self.text(page, shown), zoomed)
        for key in ("Home", "+", "ArrowRight"):
            page.key(key)
            page.settle()
        self.assertNotEqual(self.text(page, shown), "pages 0 to 64")
        page.key("Home")
        page.settle()
        self.assertEqual(self.text(page, shown), "pages 0 to 64")
        page.key("+")
        page.click(x + width / 2, y + height / 2, 1)
        page.click(x + width / 2, y + height / 2, 2)
        page.settle()
        self.assertEqual(self.text(page, shown), "pages 0 to 64")
        page.mouse("mouseMoved", 5, 5)
        self.assertEqual(page.evaluate("document.getElementById('tip').style.display"), "none")

    def threads(self, page):
        self.assertIn("60.0 %", self.text(page, "#balance"))  # 400 / 250
        pixels = "document.querySelector('#communication canvas').toDataURL()"
        logarithmic = page.evaluate(pixels)
        self.click(page, "#communication button")
        self.assertEqual(self.text(page, "#communication button"), "linear")
        self.assertNotEqual(page.evaluate(pixels), logarithmic)
        x, y, width, height = self.rectangle(page, "#communication canvas")
        page.mouse("mouseMoved", x + 0.9 * width, y + 0.6 * height)
        self.assertEqual(self.text(page, "#tip"), "T2 to T3: 2.9 KiB")
        self.assertIn("bytes that a thread (row) wrote", self.text(page, "#communication .tools"))

    def sources(self, page):
        self.assertIn("line_20", self.text(page, "#line-20"))
        self.assertIn("touches first", self.text(page, "#line-20 em"))
        self.click(page, "#advice a")
        self.assertIn("allocates field", self.text(page, "#code .now"))
        page.evaluate("(one => { one.value = '20'; one.dispatchEvent(new Event('change')); })"
                      "(document.getElementById('marks'))")
        self.assertIn("line_20", self.text(page, "#code .now"))

    def elsewhere_and_comparison(self, page):
        titles = page.evaluate("[...document.querySelectorAll('#what-if h3')].map(t => t.textContent)")
        self.assertEqual([title.split(":")[0] for title in titles], list(what_if.POLICIES))
        cells = page.evaluate("[...document.querySelectorAll('#what-if .matrix')].map(matrix => "
                              "[...matrix.querySelectorAll('td:not(.text)')]"
                              ".reduce((sum, cell) => sum + parseFloat(cell.textContent), 0))")
        self.assertEqual([round(cell) for cell in cells], [100] * len(what_if.POLICIES))
        rows = page.evaluate("[...document.querySelectorAll('#compared tbody tr')].map(r => r.innerText)")
        self.assertTrue(any(row.startswith("field") and "100.0 %" in row for row in rows), rows)
        self.click(page, "#compared [aria-label='closer']")
        self.assertEqual(self.text(page, "#compared .tools span"), "pages 16 to 48")

    def test_views_on_a_phone(self):
        page = self.opened(390, 844, scale=2, mobile=True)
        page.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
        self.all_views(page, "phone")
        self.assertEqual(self.beyond_the_edge(page), [])
        self.assertEqual(page.evaluate("getComputedStyle(document.querySelector('#structure-table tbody td:nth-child(4)'), "
                                       "'::before').content"), '"locality"')
        self.click(page, "#structure-table th:nth-child(1) button")
        self.assertIn("↑", self.text(page, "#structure-table th:nth-child(1)"))
        x, y, width, height = self.rectangle(page, "#heat canvas")
        fingers = [{"x": x + width * part, "y": y + height / 2, "id": number}
                   for number, part in enumerate((0.4, 0.6))]
        page.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=fingers)
        fingers[1]["x"] = x + 0.9 * width
        page.call("Input.dispatchTouchEvent", type="touchMove", touchPoints=fingers)
        page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        page.settle()
        self.assertNotEqual(self.text(page, "#heat .tools span"), "pages 0 to 64")
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        page.settle()
        self.all_views(page, "phone-dark")


if __name__ == "__main__":
    if not browsers.find():
        print("skipped: no Chromium")
        sys.exit(77)
    unittest.main()
