"""hwloc's XML of an invented machine, for tests: two packages whose processors have numbers of their
own, a memory each, far from each other; the second has a network device with two ports.
"""

NODE = """<?xml version="1.0" encoding="UTF-8"?>
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x0000000f" complete_cpuset="0x0000001f"
         allowed_cpuset="0x0000000f" nodeset="0x00000005" complete_nodeset="0x00000005"
         allowed_nodeset="0x00000005" gp_index="1">
  <info name="DMIProductName" value="Invented &quot;one&quot;"/>
  {package0}
  {package1}
 </object>
 <distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os">
  <indexes length="4">0 2 </indexes>
  <u64values length="12">10 21 22 10 </u64values>
 </distances2>
 <cpukind cpuset="0x00000005" forced_efficiency="1"><info name="CoreType" value="Small"/></cpukind>
 <cpukind cpuset="0x0000000a" forced_efficiency="2"><info name="CoreType" value="Big"/></cpukind>
</topology>
"""
PACKAGE = """<object type="Package" os_index="{number}" cpuset="{cpus}" complete_cpuset="{cpus}"
          nodeset="{nodes}" complete_nodeset="{nodes}" gp_index="1{number}">
   <object type="NUMANode" os_index="{node}" cpuset="{cpus}" complete_cpuset="{cpus}"
           nodeset="{nodes}" complete_nodeset="{nodes}" gp_index="2{number}"
           local_memory="4294967296"><page_type size="4096" count="1048576"/></object>
   <object type="L2Cache" cpuset="{cpus}" complete_cpuset="{cpus}" nodeset="{nodes}"
           complete_nodeset="{nodes}" gp_index="3{number}" cache_size="1048576" depth="2"
           cache_linesize="64" cache_associativity="16" cache_type="0">
    {cores}
   </object>{device}
  </object>"""
CORE = """<object type="Core" os_index="{cpu}" cpuset="{mask}" complete_cpuset="{mask}"
            nodeset="{nodes}" complete_nodeset="{nodes}" gp_index="4{cpu}">
     <object type="PU" os_index="{cpu}" cpuset="{mask}" complete_cpuset="{mask}" nodeset="{nodes}"
             complete_nodeset="{nodes}" gp_index="5{cpu}"/></object>"""
NIC = """<object type="Bridge" gp_index="60" bridge_type="0-1" depth="0" bridge_pci="0000:[00-02]">
    <object type="PCIDev" gp_index="61" pci_busid="0000:01:00.0" pci_link_speed="7.875000"
            pci_type="0200 [8086:1521] [15d9:0001] 03">
     <object type="OSDev" gp_index="62" name="eth0" subtype="Ethernet" osdev_type="2"/>
     <object type="OSDev" gp_index="63" name="eth1" osdev_type="2"/></object></object>"""


def package(number, cpus, node, device=""):
    nodes = f"0x{1 << node:08x}"
    cores = "".join(CORE.format(cpu=cpu, mask=f"0x{1 << cpu:08x}", nodes=nodes) for cpu in cpus)
    return PACKAGE.format(number=number, node=node, nodes=nodes, cores=cores, device=device,
                          cpus=f"0x{sum(1 << cpu for cpu in cpus):08x}")


def xml():
    return NODE.format(package0=package(0, (0, 2), 0), package1=package(1, (1, 3), 2, NIC))
