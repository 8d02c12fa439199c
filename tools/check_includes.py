#!/usr/bin/env python3
"""A file includes the standard header of each name of std that it uses, itself or by a header of the project.

That another header of the standard library happens to include it today is no reason: libstdc++ 13 and 14 dropped
many such includes, and the project is built with gcc 12 to 14.
    tools/check_includes.py [--mend]      --mend: adds what is missing; .ci/format -i sorts it then
"""

import os
import re
import subprocess
import sys

SOURCES = (".hpp", ".cpp")
FOLDERS = ("", "src/", "tools/", "include/", "tests/")  # of includes that aren't beside the file

# header: the names of std, and other headers that are as good.
NAMES = {
    "cstdint": (r"u?int(?:ptr|max|(?:_fast|_least)?(?:8|16|32|64))_t\b", ()),
    "algorithm": (r"(?:adjacent_find|all_of|any_of|binary_search|clamp|copy|copy_n|count|count_if|equal|equal_range|fill|fill_n|"
                  r"find|find_if|for_each|generate|is_sorted|lower_bound|max|max_element|merge|min|min_element|minmax|mismatch|"
                  r"none_of|nth_element|partition|remove|remove_if|replace|reverse|rotate|search|shuffle|sort|stable_sort|"
                  r"transform|unique|upper_bound)\(", ()),
    "array": (r"array\b", ()),
    "atomic": (r"(?:atomic|memory_order)", ()),
    "chrono": (r"chrono\b", ()),
    "cstdio": (r"(?:FILE|fclose|fopen|fprintf|fputs|perror|printf|rename|snprintf)\b", ("stdio.h",)),
    "cstdlib": (r"(?:_Exit|abort|atoi|calloc|exit|free|getenv|malloc|qsort|realloc|strtol|strtoul|strtoull|system)\b",
                ("stdlib.h",)),
    "cstring": (r"(?:mem(?:chr|cmp|cpy|move|set)|str(?:chr|cmp|cpy|error|len|ncmp|ncpy|rchr|str))\b", ("string.h",)),
    "functional": (r"(?:bind|function|greater|hash|less|ref)\b", ()),
    "iterator": (r"(?:advance|back_inserter|distance|istreambuf_iterator|make_move_iterator|next|prev)\b", ()),
    "limits": (r"numeric_limits\b", ()),
    "memory": (r"(?:addressof|make_shared|make_unique|shared_ptr|unique_ptr)\b", ()),
    "numeric": (r"(?:accumulate|gcd|inner_product|iota|partial_sum|reduce)\(", ()),
    "optional": (r"(?:nullopt|optional)\b", ()),
    "stdexcept": (r"(?:invalid_argument|length_error|logic_error|out_of_range|runtime_error)\b", ()),
    "string": (r"(?:getline|stoi|stoul|string|to_string)\b", ()),
    "thread": (r"(?:this_thread|thread)\b", ()),
    "tuple": (r"(?:make_tuple|tie|tuple)\b", ()),
    "type_traits": (r"(?:conditional|decay|enable_if|is_same|is_trivially_copyable|remove_reference)(?:_t|_v)?\b", ()),
    "utility": (r"(?:as_const|exchange|pair|swap)\b", ("map", "memory")),
    "vector": (r"vector\b", ()),
}
INCLUDE = re.compile(r'^#\s*include\s*([<"])([^>"]+)[>"]', re.M)


class Sources:
    """The texts of files, and what each includes by way of others."""

    def __init__(self, texts):
        self.texts = texts
        self.known = {}

    def find(self, file, name):
        """The file that an include of `file` means, or None."""
        for candidate in (os.path.join(os.path.dirname(file), name), *(folder + name for folder in FOLDERS)):
            path = os.path.normpath(candidate)
            if path in self.texts:
                return path
        return None

    def headers(self, file, before=()):
        """The headers that aren't the project's, of the file and of all that it includes."""
        if file not in self.known:
            found = set()
            for _, name in INCLUDE.findall(self.texts[file]):
                own = self.find(file, name)
                if own is None:
                    found.add(name)
                elif own not in before:
                    found |= self.headers(own, (*before, file))
            self.known[file] = found
        return self.known[file]

    def missing(self, file):
        """The standard headers whose names the file uses without them."""
        code = re.sub(r"//.*", "", self.texts[file])
        headers = self.headers(file)
        return [header for header, (names, others) in NAMES.items()
                if not headers.intersection((header, *others)) and re.search(rf"\bstd::{names}", code)]


def mend(file, headers):
    with open(file, encoding="utf-8") as source:
        text = source.read()
    lines = "".join(f"#include <{header}>\n" for header in headers)
    at = re.search(r"^#\s*include\s*<", text, re.M) or INCLUDE.search(text)
    if at:
        text = text[:at.start()] + lines + text[at.start():]
    else:
        print(f"{file} has no include to begin with: add {', '.join(headers)} by hand")
    with open(file, "w", encoding="utf-8") as source:
        source.write(text)


def main():
    listed = subprocess.run(["git", "ls-files", "*.hpp", "*.cpp", "*.h"], stdout=subprocess.PIPE, text=True, check=True)
    texts = {}
    for file in listed.stdout.split():
        if os.path.exists(file):
            with open(file, encoding="utf-8") as source:
                texts[file] = source.read()
    sources = Sources(texts)
    faults = 0
    for file in texts:
        missing = sources.missing(file) if file.endswith(SOURCES) else []
        if missing and "--mend" in sys.argv:
            mend(file, missing)
        elif missing:
            faults += 1
            print(f"{file}: uses names of {', '.join(f'<{header}>' for header in missing)} without including it")
    return faults > 0


if __name__ == "__main__":
    sys.exit(main())
