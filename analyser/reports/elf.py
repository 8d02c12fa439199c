"""What the analysis needs of ELF files: segments, the build id, the symbols of variables.

Everything is compared with the file's size before it is used; a damaged file raises Error.
"""

import functools
import struct

import numpy as np

from . import files

SYMBOL = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"),
                   ("value", "<u8"), ("size", "<u8")])
SECTION = np.dtype([("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("address", "<u8"),
                    ("offset", "<u8"), ("size", "<u8"), ("link", "<u4"), ("info", "<u4"),
                    ("align", "<u8"), ("entry", "<u8")])
SEGMENT = np.dtype([("type", "<u4"), ("flags", "<u4"), ("offset", "<u8"), ("address", "<u8"),
                    ("physical", "<u8"), ("file_size", "<u8"), ("size", "<u8"), ("align", "<u8")])
PT_LOAD, PT_NOTE = 1, 4
SHT_SYMTAB, SHT_DYNSYM, SHT_NOBITS = 2, 11, 8
STT_OBJECT, STT_COMMON = 1, 5
NT_GNU_BUILD_ID = 3


class Error(Exception):
    """A file can't be used; the text says why."""


class File:
    """A file of a program or library, read when it is made."""

    def __init__(self, path):
        self.path = path
        try:
            with files.open_regular(path, files.PROGRAM_LIMIT) as file:
                self.data = np.memmap(file, "u1", "r")
        except OSError as problem:
            raise Error(f"{path}: {problem.strerror}") from None
        except ValueError as problem:  # nothing is in it
            raise Error(f"{path}: {problem}") from None
        head = bytes(self.data[:64])
        if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
            raise Error(f"{path} is no 64-bit ELF file")
        segments, sections = struct.unpack_from("<QQ", head, 32)
        (segment_size, segment_count, section_size, section_count,
         _) = struct.unpack_from("<HHHHH", head, 54)
        self.segments = self._table(segments, segment_count, segment_size, SEGMENT)
        self.sections = self._table(sections, section_count, section_size, SECTION)

    def _table(self, offset, count, size, dtype):
        if count == 0:
            return np.empty(0, dtype)
        if size != dtype.itemsize or offset + count * size > len(self.data):
            raise Error(f"{self.path} is damaged: a table lies outside of the file")
        return np.frombuffer(self.data, dtype, count, offset)

    def _part(self, offset, size):
        if int(offset) + int(size) > len(self.data):
            raise Error(f"{self.path} is damaged: a section lies outside of the file")
        return self.data[int(offset):int(offset) + int(size)]

    def addresses_of_offset(self, offset):
        """The addresses, as the file counts them, of what is at an offset of the file: segments that
        meet within a page of it have that page each."""
        found = []
        for segment in self.segments[self.segments["type"] == PT_LOAD]:
            # What is mapped is whole pages.
            begin = int(segment["offset"]) & ~0xfff
            if begin <= offset < int(segment["offset"]) + max(int(segment["file_size"]), 1):
                found.append(offset - int(segment["offset"]) + int(segment["address"]))
        return found

    def end_of_memory(self):
        """The address behind the last segment, variables without a value in the file included."""
        loads = self.segments[self.segments["type"] == PT_LOAD]
        return max((int(one["address"] + one["size"]) for one in loads), default=0)

    def build_id(self):
        """As hexadecimal digits; empty if there is none."""
        for segment in self.segments[self.segments["type"] == PT_NOTE]:
            notes = bytes(self._part(segment["offset"], segment["file_size"]))
            at = 0
            while at + 12 <= len(notes):
                name_size, size, kind = struct.unpack_from("<III", notes, at)
                name = at + 12
                begin = name + (name_size + 3 & ~3)
                if kind == NT_GNU_BUILD_ID and notes[name:name + 4] == b"GNU\0":
                    return notes[begin:begin + size].hex()
                at = begin + (size + 3 & ~3)
        return ""

    @functools.cached_property
    def variables(self):
        """(addresses, sizes, names) of variables, by address."""
        for kind in (SHT_SYMTAB, SHT_DYNSYM):
            found = self.sections[self.sections["type"] == kind]
            if len(found) and int(found[0]["link"]) < len(self.sections):
                break
        else:
            return np.empty(0, "<u8"), np.empty(0, "<u8"), []
        strings = bytes(self._part(*self.sections[int(found[0]["link"])][["offset", "size"]]))
        raw = self._part(found[0]["offset"], found[0]["size"] // SYMBOL.itemsize * SYMBOL.itemsize)
        symbols = np.frombuffer(raw.tobytes(), SYMBOL)
        types = symbols["info"] & 15
        symbols = symbols[np.isin(types, (STT_OBJECT, STT_COMMON)) & (symbols["size"] > 0)
                          & (symbols["section"] != 0)]
        symbols = symbols[np.argsort(symbols["value"], kind="stable")]
        names = []
        for at in symbols["name"].tolist():
            end = strings.find(b"\0", at)
            names.append(strings[at:end if end >= 0 else None].decode("utf-8", "replace"))
        return symbols["value"].astype("<u8"), symbols["size"].astype("<u8"), names
