"""The analysis of a recording: figures of the program, its structures, sites and threads.

    analysis = Analysis.of("warren-locality")
    analysis.program.locality, analysis.structures[0].name, analysis.of_structure[0].correctness

A recording of first touches alone knows no accesses: then `analysis.trace.has_counts` is false, and
figures that need them are None.
"""

import functools

import numpy as np

from . import damage, metrics, recording, structures, symbols, trace as traces


class Analysis:
    def __init__(self, trace):
        self.trace = trace
        self.symbolizer = symbols.Symbolizer(trace)
        self.structures, self.unit_structure = structures.find(trace, self.symbolizer)
        self._resolve_first_touches()
        self.unit_bytes = trace.granularity if trace.unit_bytes is None else trace.unit_bytes
        self.units = metrics.per_unit(trace)
        # (Each unit is in one structure.)
        self.sums = metrics.sums(self.units, self.unit_bytes, self.unit_structure, len(self.structures))
        self.program = metrics.summary_of(self.sums.sum(axis=1))
        self.of_structure = [metrics.summary_of(column) for column in self.sums.T]
        self.balance = metrics.balance(trace)
        self.communication = metrics.communication(trace)

    @classmethod
    def of(cls, folder, intervals=None, everything=False):
        return cls(traces.load(folder, intervals, everything))

    @property
    def warnings(self):
        return damage.once(self.trace.warnings + self.symbolizer.missing)

    @property
    def damage(self):
        """What of the recording is damaged or missing, so that the report lacks it."""
        return self.trace.damage

    def _resolve_first_touches(self):
        sites = np.unique(self.trace.first_site)
        self.symbolizer.resolve([int(site) for site in sites if site >= 0])
        self._first_places = {}

    def first_place(self, site):
        """`file:line`, function and file of where a unit was touched first."""
        site = int(site)
        if site not in self._first_places:
            own = self.symbolizer.own_frames(site)
            if own:
                name = own[0].file.rsplit("/", 1)[-1]
                self._first_places[site] = (recording.shown(f"{name}:{own[0].line}"), own[0].function, own[0].file,
                                            own[0].line)
            else:
                functions = [f.function for f in self.symbolizer.frames(site) if f.function]
                self._first_places[site] = (self.symbolizer.header_line(site) or self.symbolizer.fallback(site),
                                            functions[0] if functions else "", "", 0)
        return self._first_places[site]

    @functools.cached_property
    def parallel_sites(self):
        """[(units, site, threads)] where more than one thread touches first, most units first."""
        sites, threads = self.trace.first_site.astype("<i8"), self.trace.first_thread
        known = (sites >= 0) & (threads >= 0)
        pairs = np.unique(sites[known] * self.trace.threads + threads[known])
        several, counts = np.unique(pairs // self.trace.threads, return_counts=True)
        units = np.bincount(sites[known], minlength=len(self.trace.sites))
        return sorted(((int(units[site]), int(site), int(count))
                       for site, count in zip(several, counts) if count > 1), reverse=True)

    def ranking(self):
        """Indices of structures, those with most remote accesses (else most units) first."""
        def weight(index):
            summary = self.of_structure[index]
            return (summary.remote, summary.units)
        return sorted(range(len(self.structures)), key=weight, reverse=True)

    def first_touches(self):
        """Units per structure (rows) and thread of the first touch (columns; the last: unknown)."""
        threads = self.trace.threads
        column = np.where(self.trace.first_thread >= 0, self.trace.first_thread, threads)
        flat = self.unit_structure.astype("<i8") * (threads + 1) + column
        return np.bincount(flat, minlength=len(self.structures) * (threads + 1)).reshape(
            len(self.structures), threads + 1)

    def accesses_by_thread(self):
        """Accesses per structure (rows) and thread."""
        threads = self.trace.threads
        flat = np.zeros(len(self.structures) * threads)
        for of, rows in traces.blocks(self.trace):
            row = np.repeat(self.unit_structure[of], np.diff(self.trace.starts[of.start:of.stop + 1])).astype("<i8")
            flat += np.bincount(row * threads + self.trace.thread[rows], weights=self.trace.accesses[rows],
                                minlength=len(flat))
        return flat.reshape(-1, threads)

    def variables(self, units):
        """Names of the variables of programs and libraries in these units."""
        return structures.variables_at(self.trace, self.symbolizer, np.asarray(units)[:256])

    def first_sites(self, structure):
        """[(site, units)] where a structure's units were touched first, the most frequent first."""
        sites, counts = np.unique(self.trace.first_site[self.unit_structure == structure],
                                  return_counts=True)
        order = np.argsort(counts)[::-1]
        return [(int(sites[i]), int(counts[i])) for i in order]
