"""The locality analyser: whose memory does each thread of a program touch, and what to change.

    import warren.locality
    run = warren.locality.load("warren-locality")     # frames.py: data frames and plots
    run.program.locality

warren.locality.recording reads what `warren locality record` has written, `trace` joins it,
`metrics` has the figures, `structures` the names, `advice` and `what_if` what would change.
"""


def load(folder, intervals=None):
    """A recording, analysed: see frames.Run."""
    from . import frames  # needs numpy, which `python3 -m warren.locality --help` does without
    return frames.Run(folder, intervals)
