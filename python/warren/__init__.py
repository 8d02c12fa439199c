"""Warren from Python: what of it is useful without MPI.

    warren.memory     the memories of a machine, ordered by attributes
    warren.topology   its processors, caches, memories and devices, and what is near
"""
