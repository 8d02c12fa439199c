"""Recordings as data frames, and plots: for notebooks.

    import warren.locality
    run = warren.locality.load("warren-locality")
    run.units, run.structures, run.threads     # pandas data frames; dictionaries of arrays without pandas
    run.plot_heat_map("u_buffer")              # matplotlib axes
"""

import numpy as np

from . import advice, analysis as analyses, tables


def _frame(columns):
    try:
        import pandas
    except ImportError:
        return columns
    return pandas.DataFrame(columns)


class Run:
    """An analysed recording. Frames are made when they are asked for."""

    def __init__(self, folder, intervals=None):
        self.analysis = analyses.Analysis.of(folder, intervals)

    @property
    def units(self):
        return _frame(tables.unit_columns(self.analysis))

    @property
    def structures(self):
        return _frame(tables.structure_columns(self.analysis))

    @property
    def threads(self):
        return _frame(tables.thread_columns(self.analysis))

    @property
    def advice(self):
        return _frame([vars(change) for change in advice.advise(self.analysis)])

    @property
    def program(self):
        return self.analysis.program

    def _axes(self, axes):
        if axes is not None:
            return axes
        try:
            from matplotlib import pyplot
        except ImportError:
            raise ImportError("plots need the Python package matplotlib") from None
        return pyplot.subplots()[1]

    def _chosen(self, structure):
        if structure is None:
            return np.arange(self.analysis.trace.units)
        names = [one.name for one in self.analysis.structures]
        if structure not in names:
            raise KeyError(f"no structure {structure!r}; there are {', '.join(sorted(set(names)))}")
        wanted = [index for index, name in enumerate(names) if name == structure]
        return np.flatnonzero(np.isin(self.analysis.unit_structure, wanted))

    def heat(self, structure=None, rows=2000):
        """Accesses, units (at most `rows`, neighbours summed) × threads."""
        trace = self.analysis.trace
        units = self._chosen(structure)
        rows = max(min(rows, len(units)), 1)
        row_of = np.full(trace.units, -1, "<i8")
        row_of[units] = np.arange(len(units)) * rows // max(len(units), 1)
        row = np.repeat(row_of, np.diff(trace.starts))
        inside = row >= 0
        return np.bincount(row[inside] * trace.threads + trace.thread[inside],
                           weights=trace.accesses[inside],
                           minlength=rows * trace.threads).reshape(rows, trace.threads)

    def plot_heat_map(self, structure=None, axes=None):
        axes = self._axes(axes)
        axes.imshow(np.log1p(self.heat(structure)).T, aspect="auto", interpolation="nearest")
        axes.set(xlabel="pages", ylabel="threads", title=structure or "all structures")
        return axes

    def plot_first_touches(self, axes=None, structures=12):
        """Pages per structure, by the thread that touched them first."""
        axes = self._axes(axes)
        touches = self.analysis.first_touches()
        order = np.argsort(touches.sum(axis=1))[::-1][:structures]
        left = np.zeros(len(order))
        for thread in range(self.analysis.trace.threads):
            axes.barh([self.analysis.structures[i].name for i in order], touches[order, thread],
                      left=left, label=self.analysis.trace.thread_label(thread))
            left += touches[order, thread]
        axes.set(xlabel="pages")
        return axes

    def plot_communication(self, axes=None):
        if self.analysis.communication is None:
            raise ValueError("communication is not known (or there are too many threads)")
        axes = self._axes(axes)
        axes.imshow(np.log1p(self.analysis.communication))
        axes.set(xlabel="thread", ylabel="thread", title="communication")
        return axes


def load(folder, intervals=None):
    return Run(folder, intervals)
