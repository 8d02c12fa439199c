"""Descriptions of processes, process.json: what is whole of them.

    info, damage = read(folder)         # {} if nothing in it can be used
    complete(info, others, folder, guess)      # what is needed and lacking, from elsewhere; None: it can't be told
"""

import json
import pathlib
import re
import zlib

from . import damage, files

FORMAT, VERSION = "warren locality recording", 1
NAME = "process.json"

# Types of values, and whether they are needed.
KEYS = {"mode": (str, True), "granularity": (int, True), "page_size": (int, True), "pid": (int, True),
        "parent": (int, False), "rank": (int, False), "size": (int, False), "start_ns": (int, False),
        "end_ns": (int, False), "bursts": (int, False), "faults": (bool, False), "end": (str, False), "host": (str, False),
        "executable": (str, False)}
MODES = ("first-touch", "counts", "sample", "hooks")
MORE_KEYS = ("command", "lost", "missing", "files")
LARGEST_UNIT = 1 << 40


class Error(Exception):
    """A recording can't be used; the text names the file and the reason."""


def _all_are(values, kind):
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _are_losses(value):
    return _all_are(value, dict) and all(
        type(loss.get("count")) is int and 0 <= loss["count"] < 1 << 64 and isinstance(loss.get("what"), str)
        and isinstance(loss.get("why"), str) for loss in value)


def _are_files(value):
    return isinstance(value, dict) and all(
        re.fullmatch(r"[\w-][\w.-]*", name) and isinstance(one, dict)
        and all(type(one.get(key)) is int and one[key] >= 0 for key in ("bytes", "crc32"))
        for name, one in value.items())


def _is_good(key, value):
    if key in KEYS:
        kind, needed = KEYS[key]  # (type(), as true is an int)
        if type(value) is not kind and (needed or value is not None):
            return False
        if key == "mode":
            return value in MODES
        if key in ("granularity", "page_size"):
            return 0 < value <= LARGEST_UNIT and value & (value - 1) == 0
        return kind is not int or value is None or -1 << 63 <= value < 1 << 64
    if key == "command":
        return isinstance(value, str) or _all_are(value, str)
    return {"missing": lambda: _all_are(value, str), "lost": lambda: _are_losses(value),
            "files": lambda: _are_files(value)}[key]()


def _shown(value):
    """A value as people see it, and of a long one how much there is."""
    text, most = str(value), 80
    return repr(text) if len(text) <= most else f"{text[:most]!r} … ({len(text):,} characters)"


def _saved(text):
    """The values that are whole in a text that is no JSON as a whole."""
    found = {}
    for key in (*KEYS, *MORE_KEYS):
        place = re.search(rf'"{key}":\s*', text)  # (in strings quotes are escaped)
        if not place:
            continue
        try:
            value, end = json.JSONDecoder().raw_decode(text, place.end())
        except (ValueError, RecursionError):
            continue
        if re.match(r"\s*[,}]", text[end:end + 64]):  # else it may be cut
            found[key] = value
    return found


def read(folder):
    path = pathlib.Path(folder, NAME)
    try:
        data = files.read_regular(path, files.DESCRIPTION_LIMIT)
    except FileNotFoundError:
        return {}, [damage.of(path, "is missing: its writer was stopped before it wrote one, the disk was "
                                    "full, or it was deleted")]
    except OSError as problem:
        return {}, [damage.of(path, f"can't be read: {problem.strerror}")]
    found = []
    try:
        info = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        info = _saved(data.decode("utf-8", "replace"))
        found.append(damage.of(path, f"is damaged: {problem}", "what is not whole of it"))
    else:
        if not isinstance(info, dict):
            return {}, [damage.of(path, "doesn't describe a locality recording")]
        # The sum comes first: what it doesn't fit isn't of another format or version, but damaged.
        end = data.rfind(b',\n "sum"')
        if "sum" in info and (end < 0 or zlib.crc32(data[:end]) != info["sum"]):
            found.append(damage.of(path, "is not what was written", "values of it may be wrong"))
        elif info.get("format") != FORMAT:
            found.append(damage.of(path, "doesn't describe a locality recording"))
        elif info.get("version") != VERSION:
            raise Error(f"{path} has version {info.get('version')} of the format; this reader is for "
                        f"version {VERSION}")
    for key in (*KEYS, *MORE_KEYS):
        needed = key in KEYS and KEYS[key][1]
        if (key in info or needed) and not _is_good(key, info.get(key)):
            if key in info or not found:
                found.append(damage.of(path, f"is damaged: {key!r} is {_shown(info.get(key))}", f"its {key!r}"))
            info.pop(key, None)
    if info.get("files") and "sum" not in info and not found:
        found.append(damage.of(path, "is not what was written: it has no sum", "values of it may be wrong"))
    return info, found


def complete(info, others, folder, guess):
    """Of what is needed and lacking takes what all other processes have, or what `guess`, a function,
    tells by the records: sentences about that. None: that is not enough."""
    folder = pathlib.Path(folder)
    number = re.match(r"(rank|process)-(\d{1,9})", folder.name)
    if "pid" not in info:
        info["pid"] = int(number[2]) if number and number[1] == "process" else -1
    if "rank" not in info and number and number[1] == "rank":
        info["rank"] = int(number[2])
    guessed, told = None, []
    for key in ("mode", "granularity", "page_size"):
        if key in info:
            continue
        known = {other[key] for other in others if key in other}
        origin = "as in the other processes"
        if len(known) != 1:
            guessed = guess() if guessed is None else guessed
            known, origin = {guessed[key]} if key in guessed else set(), "by the look of the records"
        if not known:
            return None
        info[key] = known.pop()
        told.append(f"{folder}: its {key!r} is taken to be {info[key]!r}, {origin}")
    return told
