"""On the machine giant-pages: pages of 1 GiB, one of which node 1 has, are placed whole or refused.

    giant_pages.py FOLDER-OF-BUILD
"""
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
os.environ["WARREN_LIBRARY"] = os.path.join(sys.argv[1], "lib", "libwarren.so")
from warren import memory  # pylint: disable=wrong-import-position

GIB = 1 << 30
FREE = pathlib.Path("/sys/devices/system/node/node1/hugepages/hugepages-1048576kB/free_hugepages")


def expect(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def free_pages():
    return int(FREE.read_text())


def refused(size, criteria):
    try:
        memory.allocate(size, criteria)
    except MemoryError as reason:
        print(f"refused: {reason}")
        return True
    return False


expect(free_pages() == 1, f"{free_pages()} pages are set apart")
strict = "capacity from=cpus:1 page=hugetlb:1G full=strict"
for size, criteria in ((GIB - 5000, strict), (100, strict),
                       (GIB, "latency from=cpus:0 page=hugetlb:1G")):
    block = memory.allocate(size, criteria)
    expect(free_pages() == 0, "the page is not taken")
    block[0] = block[size // 2] = block[size - 1] = 7
    for part in (block[:8192], block[size // 2:][:8192], block[-1:]):
        expect(set(memory.where(part)) == {1}, "the page is elsewhere")
    expect(refused(1, strict), "two blocks have one page")
    expect(refused(GIB, "capacity page=hugetlb:1G"), "there is a page that is not there")
    del part, block
    memory.trim()
    expect(free_pages() == 1, "the page is kept")
expect(refused(GIB + 1, strict), "a page and a byte fit one page")
expect(refused(1, "latency from=cpus:0 page=hugetlb:1G full=strict"), "node 0 has a page")
expect(free_pages() == 1, "a refusal keeps a page")
print("ok: a page of 1 GiB")
