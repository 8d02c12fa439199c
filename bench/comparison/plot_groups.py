"""The plot of bench/groups: plot_groups.py results.json plot.png (needs matplotlib)."""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the back end is chosen first)

COLOURS = {"warren": "#c0392b", "mpich": "#2874a6", "openmpi": "#b7950b", "impi": "#6c757d"}
PANELS = [("groups latency", "Half round trip, each pair (µs)"),
          ("groups message rate", "Message rate, all pairs (million/s)"),
          ("groups bandwidth", "Bandwidth, all pairs (GB/s)")]


def style(key):
    if key.endswith("-threads"):
        return {"linestyle": ":", "marker": "x"}
    if key.endswith(("-thread-ranks", "-private")):
        return {"linestyle": "--", "marker": "s", "linewidth": 2.2}
    return {"linestyle": "-", "marker": "o"}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    rows = document["figures"]
    states = [row["state"] for row in rows if row["state"]]
    state = max(set(states), key=states.count) if states else ""
    figure, grid = plt.subplots(1, len(PANELS), figsize=(16, 5.4), layout="constrained")
    for axes, (name, title) in zip(grid, PANELS):
        chosen = [row for row in rows if row["figure"] == name and row["state"] in ("", state)]
        numbers = sorted({row["ranks"] for row in chosen})
        for key, library in document["libraries"].items():
            points = [(numbers.index(row["ranks"]), row["libraries"][key]["median"])
                      for row in chosen if key in row["libraries"]]
            if points:
                axes.plot(*zip(*points), color=COLOURS[key.split("-")[0]], markersize=5,
                          label=library["title"], **style(key))
        axes.set_xticks(range(len(numbers)), [str(n) for n in numbers])
        axes.set_yscale("log")
        axes.set_xlabel("threads of both groups")
        axes.set_title(f"{title}, {chosen[0]['size']:,} B" if chosen else title, fontsize=10)
        axes.grid(axis="y", alpha=0.3)
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside upper center", ncols=4,
                  fontsize=8)
    machine = document["machine"]
    figure.supxlabel(f"{machine['processor']}, {machine['processors']} processors; medians of "
                     "interleaved runs, each library with its best settings"
                     + (f"; machine state: {state}" if state else ""), fontsize=8)
    figure.savefig(sys.argv[2], dpi=110)


main()
