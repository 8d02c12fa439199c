"""The machines that the tests boot: processors and memories as the firmware's tables describe them.

A machine is a dictionary:
    processors  (packages, dies per package, cores per die, threads per core)
    nodes       a list, by node number: {"mebibytes": size, "cpus": "0-3"}; memory without processors of
                its own has no "cpus". The first node holds the kernel, too (about 50 MiB).
    distances   SLIT: a row per node
    performance HMAT: {(initiator node, target node): (latency in ns, bandwidth in MB/s)}
    writes      the same of writes where they differ from reads, which are the above then
    caches      memory-side caches: {node: mebibytes}
    kernel      words of the kernel's command line
Sizes are small, so that filling a memory is quick; their proportions, and all other values, are
those of the machine.
"""


def knl_snc4_flat():
    """Xeon Phi with four clusters, each with DDR (nodes 0-3) and HBM (4-7)."""
    cluster = range(4)
    nodes = [{"mebibytes": 192, "cpus": f"{2 * c}-{2 * c + 1}"} for c in cluster]
    nodes += [{"mebibytes": 96} for c in cluster]

    def distance(one, other):
        if one == other:
            return 10
        if one < 4 and other < 4:
            return 21
        return 31 if one % 4 == other % 4 and (one < 4 or other < 4) else 41

    performance = {}
    for c in cluster:
        for target in range(8):
            near = target % 4 == c
            latency = (130 if target < 4 else 155) + (0 if near else 25)
            bandwidth = (22500 if near else 20000) if target < 4 else (87500 if near else 70000)
            performance[c, target] = (latency, bandwidth)
    return {"processors": (1, 4, 2, 1), "nodes": nodes,
            "distances": [[distance(a, b) for b in range(8)] for a in range(8)],
            "performance": performance, "caches": {}}


def xeon_nvdimm():
    """Two packages, each with DDR (0, 1) and non-volatile memory (2, 3)."""
    nodes = [{"mebibytes": 192, "cpus": "0-1"}, {"mebibytes": 192, "cpus": "2-3"},
             {"mebibytes": 256}, {"mebibytes": 256}]
    distances = [[10, 21, 17, 28], [21, 10, 28, 17], [17, 28, 10, 28], [28, 17, 28, 10]]
    performance, writes = {}, {}
    for package in (0, 1):
        performance[package, package] = (285, 80000)
        performance[package, 1 - package] = (360, 34000)
        performance[package, 2 + package] = (860, 10000)
        performance[package, 3 - package] = (930, 8000)
        writes[package, package] = (285, 60000)
        writes[package, 1 - package] = (360, 30000)
        # The memory's controllers take writes into their buffers.
        writes[package, 2 + package] = (240, 2000)
        writes[package, 3 - package] = (320, 1600)
    return {"processors": (2, 1, 2, 1), "nodes": nodes, "distances": distances,
            "performance": performance, "writes": writes, "caches": {}}


def xeon_2lm():
    """Two packages in memory mode: large memory behind a memory-side cache."""
    return {"processors": (2, 1, 2, 1),
            "nodes": [{"mebibytes": 256, "cpus": "0-1"}, {"mebibytes": 256, "cpus": "2-3"}],
            "distances": [[10, 21], [21, 10]],
            "performance": {(0, 0): (300, 60000), (0, 1): (400, 30000),
                            (1, 0): (400, 30000), (1, 1): (300, 60000)},
            "caches": {0: 64, 1: 64}}


def fig1_2020():
    """Figure 1 of Rubio Proaño 2020: two packages of two clusters. HBM per cluster (0-3, which hold
    the processors), DDR (4, 5) and NVDIMM (6, 7) per package, memory on the network for all (8)."""
    kinds = ["HBM"] * 4 + ["DDR"] * 2 + ["NVDIMM"] * 2 + ["network"]
    sizes = {"HBM": 144, "DDR": 224, "NVDIMM": 320, "network": 96}
    package = [0, 0, 1, 1, 0, 1, 0, 1, None]
    near = {"HBM": (120, 200000), "DDR": (100, 90000), "NVDIMM": (350, 12000),
            "network": (2500, 5000)}
    farther = {"HBM": 0, "DDR": 3, "NVDIMM": 8, "network": 60}
    nodes = [{"mebibytes": sizes[kind]} for kind in kinds]
    for cluster in range(4):
        nodes[cluster]["cpus"] = f"{2 * cluster}-{2 * cluster + 1}"

    def distance(one, other):
        if one == other:
            return 10
        together = package[one] == package[other] or None in (package[one], package[other])
        return (12 if together else 21) + farther[kinds[one]] + farther[kinds[other]]

    performance = {}
    for initiator in range(4):
        for target, kind in enumerate(kinds):
            latency, bandwidth = near[kind]
            if kind != "network" and package[initiator] != package[target]:
                latency, bandwidth = latency + 80, min(bandwidth // 2, 40000)
            elif kind == "HBM" and initiator != target:
                latency, bandwidth = latency + 15, bandwidth * 3 // 4
            performance[initiator, target] = (latency, bandwidth)
    return {"processors": (2, 2, 2, 1), "nodes": nodes,
            "distances": [[distance(a, b) for b in range(9)] for a in range(9)],
            "performance": performance, "caches": {}}


def epyc_nps2_16():
    """Two packages of two halves with one kind of memory, 16 processors."""
    def by_way(one, other, values):
        return values[0 if one == other else 1 if one // 2 == other // 2 else 2]

    return {"processors": (2, 2, 2, 2),
            "nodes": [{"mebibytes": 192, "cpus": f"{4 * n}-{4 * n + 3}"} for n in range(4)],
            "distances": [[by_way(a, b, (10, 12, 32)) for b in range(4)] for a in range(4)],
            "performance": {(a, b): by_way(a, b, ((90, 40000), (100, 35000), (190, 20000)))
                            for a in range(4) for b in range(4)},
            "caches": {}}


def giant_pages():
    """Two memories of one kind, the second with a page of 1 GiB that is set apart at the start."""
    return {"processors": (2, 1, 1, 1),
            "nodes": [{"mebibytes": 512, "cpus": "0"}, {"mebibytes": 2048, "cpus": "1"}],
            "distances": [[10, 21], [21, 10]],
            "performance": {(0, 0): (100, 50000), (0, 1): (200, 25000),
                            (1, 0): (200, 25000), (1, 1): (100, 50000)},
            "caches": {}, "kernel": "hugepagesz=1G hugepages=1:1"}


MACHINES = {"knl-snc4-flat": knl_snc4_flat, "xeon-nvdimm": xeon_nvdimm, "xeon-2lm": xeon_2lm,
            "fig1-2020": fig1_2020, "epyc-nps2-16": epyc_nps2_16, "giant-pages": giant_pages}


def best_initiators(machine, target):
    """The initiator nodes from which a target is reached best, as the firmware's table has it."""
    def latency(initiator):
        return machine["performance"][initiator, target][0]

    initiators = {pair[0] for pair in machine["performance"]}
    least = min(latency(initiator) for initiator in initiators)
    return sorted(initiator for initiator in initiators if latency(initiator) == least)


def qemu_options(machine):
    """The options that make QEMU's virtual machine that machine."""
    packages, dies, cores, threads = machine["processors"]
    options = ["-smp", f"{packages * dies * cores * threads},sockets={packages},dies={dies},"
                       f"cores={cores},threads={threads}",
               "-m", f"{sum(node['mebibytes'] for node in machine['nodes'])}M"]
    for number, node in enumerate(machine["nodes"]):
        options += ["-object", f"memory-backend-ram,id=memory{number},size={node['mebibytes']}M"]
        text = f"node,nodeid={number},memdev=memory{number}"
        if "cpus" in node:
            text += f",cpus={node['cpus']},initiator={number}"
        else:
            best = best_initiators(machine, number)
            if len(best) == 1:
                text += f",initiator={best[0]}"
        options += ["-numa", text]
    for one, row in enumerate(machine["distances"]):
        for other, distance in enumerate(row):
            if one != other:
                options += ["-numa", f"dist,src={one},dst={other},val={distance}"]
    writes = machine.get("writes", {})
    tables = [("read" if writes else "access", machine["performance"]), ("write", writes)]
    for access, table in tables:
        for (initiator, target), values in sorted(table.items()):
            for quantity, value, unit in zip(("latency", "bandwidth"), values, ("", "M")):
                options += ["-numa", f"hmat-lb,initiator={initiator},target={target},"
                                     f"hierarchy=memory,data-type={access}-{quantity},"
                                     f"{quantity}={value}{unit}"]
    for node, mebibytes in machine["caches"].items():
        options += ["-numa", f"hmat-cache,node-id={node},size={mebibytes}M,level=1,"
                             "associativity=direct,policy=write-back,line=64"]
    return options
