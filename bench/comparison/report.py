"""Table, verdicts and the JSON file of a comparison."""

import json
import os
import platform

from .questions import COLLECTIVES, FILES, HIGHER_IS_BETTER, RMA, TARGETS

ORDER = ["latency", "bandwidth", "message rate", "halo", "launch", "private dirty", "library's own",
         "PSS", "PSS of all", *COLLECTIVES, "pairs latency", "dup", "split", "dup and free", "dup memory",
         "split memory", "idle CPU", *RMA, *FILES]


def machine():
    model = ""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"processor": model, "processors": len(os.sched_getaffinity(0)),
            "kernel": platform.release(), "load": os.getloadavg()}


def verdicts(summary, usual, forms):
    """One row per figure: values, ratio to the best peer, target, verdict.

    `usual` is {library key: names of its first variants}: "ratio_usual" compares with the best
    peer under its usual settings, "ratio" with the best peer under its best ones. `forms` are the
    keys of Warren; the first that has a figure is what is compared.
    """
    rows = []
    for key in sorted(summary, key=sort_key):
        rate = key[0] in HIGHER_IS_BETTER
        better = max if rate else min
        entries = {}
        for library, variants in summary[key].items():
            name = better(variants, key=lambda name: variants[name]["median"])
            entries[library] = {**variants[name], "variant": name}
        row = {"figure": key[0], "mode": key[1], "size": key[2], "ranks": key[3],
               "state": key[4], "unit": next(iter(entries.values()))["unit"],
               "libraries": entries, "variants": summary[key]}
        ours = next((entries[library] for library in forms if library in entries), None)
        peers = {name: entry for name, entry in entries.items() if name not in forms}
        if ours and peers:
            best = better(peers, key=lambda name: peers[name]["median"])
            row["best_peer"] = best
            row["ratio"] = quotient(ours["median"], peers[best]["median"])
            row["ratio_of_best"] = quotient(ours["best"],
                                            better(entry["best"] for entry in peers.values()))
            defaults = [entry["median"] for name in peers
                        for variant, entry in summary[key][name].items()
                        if variant in usual[name]]
            row["ratio_usual"] = quotient(ours["median"], better(defaults)) if defaults else None
        judge(row, key, rate, ours)
        rows.append(row)
    return rows


def judge(row, key, rate, ours):
    target = next((t for t in TARGETS if t.concerns(key[:4])), None)
    if target is None:
        return
    row["target"] = f"{'≥' if rate else '≤'} {target.limit:g}" + (
        " ×" if target.kind == "ratio" else " " + row["unit"])
    value = row.get("ratio") if target.kind == "ratio" else ours and ours["median"]
    if value is None:
        row["verdict"] = "open"
    else:
        met = value >= target.limit if rate else value <= target.limit
        row["verdict"] = "met" if met else "missed"


def quotient(value, by):
    return value / by if by > 0 else None


def sort_key(key):
    place = ORDER.index(key[0]) if key[0] in ORDER else len(ORDER)
    return (place, key[1], key[4], key[3], -1 if key[2] is None else key[2])


def size_text(size):
    if size is None:
        return ""
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def number(value):
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def table(rows, libraries):
    """Lines of text: a column per library with median [best]."""
    head = ["figure", "machine", "size", "ranks", "unit", *[library.title for library in libraries],
            "ratio [best]", "usual", "target", "verdict"]
    body = []
    for row in rows:
        cells = [row["figure"] + (f", {row['mode']}" if row["mode"] else ""), row["state"],
                 size_text(row["size"]), str(row["ranks"]), row["unit"]]
        for library in libraries:
            entry = row["libraries"].get(library.key)
            if entry is None:
                cells.append("–")
                continue
            loose = (row["ranks"] == 2 and not entry["pinned"]
                     and row["figure"] in ("latency", "bandwidth", "message rate", "halo",
                                           *COLLECTIVES))
            cells.append(f"{number(entry['median'])} [{number(entry['best'])}]"
                         + ("*" if loose else ""))
        ratio, of_best, usual = (row.get(name) for name in
                                 ("ratio", "ratio_of_best", "ratio_usual"))
        cells.append("" if ratio is None else number(ratio)
                     + ("" if of_best is None else f" [{number(of_best)}]"))
        cells.append("" if usual is None else number(usual))
        cells += [row.get("target", ""), row.get("verdict", "")]
        body.append(cells)
    widths = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]
    lines = []
    for cells in [head, *body]:
        lines.append("  ".join(cell.ljust(width) if i < 1 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(cells, widths))).rstrip())
    lines.insert(1, "-" * len(lines[0]))
    lines += ["", "median of the runs' medians [best batch of all]; ratio: Warren / best peer with "
              "its best settings;", "usual: the same with the peers' usual settings"]
    if any(row["state"] for row in rows):
        lines.append("machine: what a bare cache line took between the two processors at that time "
                     "(see README.md)")
    if any("*" in line for line in lines):
        lines.append("* the ranks were not on different processors: binding did not take effect")
    return lines


def settings(rows, libraries):
    """Which settings the figures of each library were reached with."""
    lines = []
    for library in libraries:
        used = {}
        for row in rows:
            entry = row["libraries"].get(library.key)
            if entry:
                place = f"{row['figure']} {row['ranks']}"
                used.setdefault(entry["variant"], []).append(place)
        for variant, places in used.items():
            unique = list(dict.fromkeys(places))
            lines.append(f"{library.title}, {variant}: {', '.join(unique)}")
    return lines


def write_json(path, rows, libraries, runner, missing, options):
    variants = {library.key: {situation: [vars(v) for v in found]
                              for situation, found in library.variants.items()}
                for library in libraries}
    raw = [{"library": library, "variant": variant, "lines": lines}
           for (_, library, variant), lines in runner.samples.items()]
    document = {"machine": machine(), "options": options, "missing": missing,
                "libraries": {library.key: {"title": library.title, "version": library.version}
                              for library in libraries},
                "figures": rows, "failures": runner.failures, "settings": variants, "runs": raw}
    path.write_text(json.dumps(document, indent=1, default=str, ensure_ascii=False) + "\n",
                    encoding="utf-8")
