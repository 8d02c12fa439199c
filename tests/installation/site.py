#!/usr/bin/env python3
"""The site is built without a warning. Each page fits a desk's and a phone's screen, shows its pictures and
makes the browser say nothing; tables break no name within a word; the search finds pages.

    site.py SOURCE BUILD WORK      WORK gets a picture of each page

Exit code 77: there is no browser, or mkdocs can't be had, so something was not tested.
"""
import functools
import http.server
import pathlib
import subprocess
import sys
import threading

source, build, work = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
sys.path.insert(0, str(source / "analyser/tests/reports"))
import browser  # noqa: E402

NO_MKDOCS = 3
WIDTHS = {"desk": 1280, "phone": 390}
# What lies right of the screen though nothing around it scrolls.
CUT_OFF = """[...document.querySelectorAll('.md-content *')]
    .filter(one => one.getBoundingClientRect().right > innerWidth + 1
                   && !one.closest('.md-typeset__scrollwrap, .highlight, pre'))
    .map(one => one.tagName + ' ' + one.textContent.slice(0, 40))"""
# Names in tables, a word of which is on two lines.
BROKEN = r"""[...document.querySelectorAll('.md-content td code')]
    .filter(code => [...code.childNodes].some(text => [...(text.data || '').matchAll(/\w+/g)].some(word => {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        return range.getClientRects().length > 1;
    }))).map(one => one.textContent)"""
NOT_LOADED = "[...document.images].filter(one => !one.naturalWidth).map(one => one.src)"
SEARCH = """(() => {
    const field = document.querySelector('.md-search__input');
    document.querySelector('label[for=__search]').click();
    field.focus();
    field.value = 'fibres';
    field.dispatchEvent(new Event('input', {bubbles: true}));
    field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));
})()"""
FOUND = "document.querySelectorAll('.md-search-result__item').length > 0"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def look(tab, address, picture):
    """What is wrong with a page."""
    tab.problems.clear()
    tab.call("Page.navigate", url=address)
    tab.wait("document.readyState === 'complete'")
    tab.settle()
    wrong = [f"the browser says: {problem}" for problem in tab.problems]
    wrong += [f"cut off: {one}" for one in tab.evaluate(CUT_OFF)[:3]]
    wrong += [f"broken within a word: {one}" for one in tab.evaluate(BROKEN)[:3]]
    wrong += [f"not loaded: {one}" for one in tab.evaluate(NOT_LOADED)]
    if tab.evaluate("document.documentElement.scrollWidth > innerWidth"):
        wrong.append("wider than the screen")
    tab.screenshot(picture)
    return wrong


built = subprocess.run([source / "packaging/site/build", build], stdout=subprocess.PIPE, text=True)
if built.returncode == NO_MKDOCS:
    print("LEFT OUT: mkdocs-material can't be had")
    sys.exit(77)
if built.returncode != 0:
    sys.exit("the site is not built")
if browser.find() is None:
    print("LEFT OUT: the site was built, but there is no browser to look at it")
    sys.exit(77)

html = pathlib.Path(built.stdout.strip().splitlines()[-1]).parent
pages = sorted(page.relative_to(html).as_posix() for page in html.rglob("*.html") if page.name != "404.html")
work.mkdir(parents=True, exist_ok=True)
failures = [] if len(pages) > 30 else [f"only {len(pages)} pages"]
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(html)))
threading.Thread(target=server.serve_forever, daemon=True).start()
for screen, width in WIDTHS.items():
    with browser.Browser(width, 900, mobile=screen == "phone") as tab:
        for page in pages:
            picture = work / f"{screen}-{page.replace('/', '-')}.png"
            failures += [f"{page}, {screen}: {wrong}"
                         for wrong in look(tab, f"http://127.0.0.1:{server.server_port}/{page}", picture)]
        tab.call("Page.navigate", url=f"http://127.0.0.1:{server.server_port}/index.html")
        tab.wait("document.querySelector('label[for=__search]') !== null")
        tab.evaluate(SEARCH)
        tab.wait(FOUND)
print("\n".join(failures) or f"{len(pages)} pages, pictures in {work}")
sys.exit(1 if failures else 0)
