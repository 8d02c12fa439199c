"""The plot of a comparison: plot.py results.json plot.png (needs matplotlib)."""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the back end is chosen first)

COLOURS = {"warren": "#c0392b", "warren-threads": "#e67e22", "warren-fibres": "#b7950b", "mpich": "#2874a6",
           "openmpi": "#b7950b", "impi-rt": "#6c757d"}
PANELS = [  # title, figure, mode, by
    ("Half round trip, same buffer (µs)", "latency", "cached", "size"),
    ("Half round trip, buffer written (µs)", "latency", "written", "size"),
    ("Bandwidth, same buffer (GB/s)", "bandwidth", "cached", "size"),
    ("Bandwidth, buffers written (GB/s)", "bandwidth", "written", "size"),
    ("Message rate, 8 B (million/s)", "message rate", None, "mode"),
    ("Launch: initialise and finalise (s)", "launch", "", "ranks"),
    ("Private dirty memory per rank (kB)", "private dirty", "", "ranks"),
    ("Barrier (µs)", "barrier", "", "ranks"),
    ("Allreduce, 8 B (µs)", "allreduce", "", "ranks"),
    ("Half round trip of pairs, 8 B (µs)", "pairs latency", "cached", "ranks"),
    ("MPI_Comm_dup (µs)", "dup", "", "ranks"),
    ("MPI_Comm_split, odd and even (µs)", "split", "", "ranks"),
    ("Memory of a split communicator per rank (B)", "split memory", "", "ranks"),
    ("CPU use of ranks blocked in Recv (%)", "idle CPU", "", "ranks"),
]


def label(by, value):
    if by == "size":
        for shift, unit in ((20, "M"), (10, "K")):
            if value >= 1 << shift:
                return f"{value >> shift}{unit}"
    return str(value)


def draw(axes, rows, by, libraries):
    """Lines over sizes and ranks, bars where there is a single place."""
    places = sorted({row[by] for row in rows}, key=lambda v: (isinstance(v, str), v))
    value = {(row[by], key): entry for row in rows for key, entry in row["libraries"].items()}
    for index, (key, library) in enumerate(libraries.items()):
        points = [(i, value[place, key]["median"]) for i, place in enumerate(places)
                  if (place, key) in value]
        if not points:
            continue
        across, up = zip(*points)
        if len(places) > 2:
            axes.plot(across, up, marker="o", markersize=4, color=COLOURS.get(key),
                      label=library["title"])
        else:
            width = 0.8 / len(libraries)
            axes.bar([x + width * (index - (len(libraries) - 1) / 2) for x in across], up, width,
                     color=COLOURS.get(key), label=library["title"])
    axes.set_xticks(range(len(places)), [label(by, place) for place in places])
    if len(places) > 2:
        axes.set_yscale("log")
    axes.set_xlabel({"size": "bytes", "ranks": "ranks", "mode": "buffers"}[by])
    axes.grid(axis="y", alpha=0.3)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    # One state of the machine: the one with the most figures.
    states = [row["state"] for row in document["figures"] if row["state"]]
    state = max(set(states), key=states.count) if states else ""
    panels = []
    for title, figure, mode, by in PANELS:
        rows = [row for row in document["figures"]
                if row["figure"] == figure and mode in (None, row["mode"])
                and row["state"] in ("", state)
                and (by != "ranks" or row["size"] in (None, 8))]
        if rows:
            panels.append((title, rows, by))
    if not panels:
        sys.exit("nothing to plot")
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    figure, grid = plt.subplots(lines, columns, figsize=(5 * columns, 3.4 * lines), squeeze=False,
                                layout="constrained")
    for axes, panel in zip(grid.flat, panels):
        axes.set_title(panel[0], fontsize=10)
        draw(axes, panel[1], panel[2], document["libraries"])
    for axes in grid.flat[len(panels):]:
        axes.axis("off")
    handles, labels = {}, []
    for axes in grid.flat:
        for handle, text in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(text, handle)
    labels = list(handles)
    figure.legend(handles.values(), labels, loc="outside upper center", ncols=len(labels))
    machine = document["machine"]
    figure.supxlabel(f"{machine['processor']}, {machine['processors']} processors; medians of "
                     "interleaved runs, each library with its best settings"
                     + (f"; machine state: {state}" if state else ""), fontsize=8)
    figure.savefig(sys.argv[2], dpi=110)


main()
