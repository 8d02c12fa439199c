"""Warren from Python: what of it is useful without MPI.

    warren.memory   the memories of a machine, ordered by attributes
"""
