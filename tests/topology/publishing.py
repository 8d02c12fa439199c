#!/usr/bin/env python3
"""The topology image that mpiexec makes for its ranks, and `warren topo`.

    publishing.py --mpiexec M --warren W --user IMAGE_USER [--case NAME] [--without-threads]
        [--sanitized USER …]
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from xml.etree import ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cases
from cases import case, expect

NODE, NATIVE = "1", "5"  # WARREN_TOPOLOGY_NODE, _NATIVE
MACHINE = "synthetic:pack:2 numa:2 l3:1 core:4 pu:2"  # 32 PUs
KINDS = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3"
          nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
    <info name="HostName" value="a &lt;b&gt; &amp; &quot;c&quot;"/>
    <object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1"
            complete_nodeset="0x1" gp_index="2" subtype="HBM" local_memory="1073741824">
      <page_type size="4096" count="262144"/>
    </object>
    <object type="NUMANode" os_index="1" cpuset="0x3" complete_cpuset="0x3" nodeset="0x2"
            complete_nodeset="0x2" gp_index="3" subtype="DRAM" local_memory="8589934592"/>
    <object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x3"
            complete_nodeset="0x3" gp_index="4">
      <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x3"
              complete_nodeset="0x3" gp_index="5"/>
    </object>
    <object type="Core" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x3"
            complete_nodeset="0x3" gp_index="6">
      <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x3"
              complete_nodeset="0x3" gp_index="7"/>
    </object>
  </object>
  <memattr name="Bandwidth" flags="5">
    <memattr_value target_obj_type="NUMANode" target_obj_gp_index="2" value="90000"
                   initiator_cpuset="0x3"/>
  </memattr>
</topology>
"""

for variable in ("WARREN_RANKS", "WARREN_TOPOLOGY", "HWLOC_XMLFILE", "HWLOC_SYNTHETIC"):
    os.environ.pop(variable, None)


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=100,
                          stdin=subprocess.DEVNULL, **options)


def mpiexec(*words, **options):
    return run(args.mpiexec, "-v", *words, **options)


def topo(*words, **options):
    return run(args.warren, "topo", *words, **options)


def loads(done):
    return [line.split() for line in done.stdout.splitlines()]


@case
def ranks_that_ask_share_one_image():
    done = mpiexec("-n", "4", args.user)
    expect(done.returncode == 0 and [line[0] for line in loads(done)] == [NODE] * 4, done)
    expect(len(re.findall("the topology image of", done.stderr)) == 1, done)


@case
def nothing_is_discovered_for_ranks_that_do_not_ask():
    done = mpiexec("-n", "2", "true")
    expect(done.returncode == 0 and "topology" not in done.stderr, done)


@case
def a_job_can_have_another_topology():
    done = mpiexec("-n", "2", "--topology", MACHINE, args.user)
    expect([(line[0], line[2]) for line in loads(done)] == [(NODE, "32")] * 2, done)
    with tempfile.TemporaryDirectory() as folder:
        xml, image = pathlib.Path(folder, "kinds.xml"), pathlib.Path(folder, "kinds")
        xml.write_text(KINDS)
        expect(topo("publish", image, xml).returncode == 0, "publish")
        for source in (xml, image, f"xml:{xml}", f"image:{image}"):
            done = mpiexec("-n", "1", "--topology", source, args.user)
            expect(loads(done)[0][2:] == ["2", "HBM"], done)
        # The same to hwloc's users.
        done = mpiexec("-n", "1", "--topology", image, "--hwloc-shmem", args.user)
        expect(loads(done)[0][2:] == ["2", "HBM"] and "hwloc's topology for" in done.stderr, done)
    done = mpiexec("-n", "1", args.user, env={**os.environ, "WARREN_TOPOLOGY": MACHINE})
    expect(loads(done)[0][2] == "32", done)


@case
def threads_share_it_too():
    if args.without_threads:
        return
    done = mpiexec("--ranks", "threads", "-n", "3", args.user)
    expect(done.returncode == 0 and [line[0] for line in loads(done)] == [NODE] * 3, done)


@case
def who_has_closed_it_discovers():
    done = mpiexec("-n", "1", args.user, "closed")
    expect(done.returncode == 0 and loads(done)[0][0] == NATIVE, done)


@case
def a_job_within_a_job_has_its_own():
    done = run(args.mpiexec, "-n", "1", "--topology", MACHINE, args.mpiexec, "-n", "1", "--topology",
               "synthetic:pu:3", args.user)
    expect(loads(done)[0][2] == "3", done)
    done = run(args.mpiexec, "-n", "1", "--topology", MACHINE, args.mpiexec, "-n", "1", args.user)
    expect(loads(done)[0][0] == NODE and loads(done)[0][2] != "32", done)


@case
def a_rank_whose_mpiexec_is_killed_does_not_wait():
    job = subprocess.Popen([args.mpiexec, "-n", "1", "sh", "-c",
                            "echo $$; kill -STOP $PPID; exec \"$0\"", args.user],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children")
    deadline = time.monotonic() + 30
    ranks = []
    try:
        while not any(name == "image_user" for _, name in ranks):
            expect(time.monotonic() < deadline, ranks)
            time.sleep(0.02)
            ranks = [(pid, pathlib.Path(f"/proc/{pid}/comm").read_text().strip())
                     for pid in children.read_text().split()]
    finally:
        job.kill()
        job.wait()
    while any(pathlib.Path(f"/proc/{pid}/maps").exists() and
              pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
              for pid, _ in ranks):
        expect(time.monotonic() < deadline, "a rank stays")
        time.sleep(0.02)


@case
def wrong_sources_are_refused_before_ranks_start():
    with tempfile.TemporaryDirectory() as folder:
        damaged = pathlib.Path(folder, "damaged")
        expect(topo("publish", damaged, MACHINE).returncode == 0, "publish")
        content = bytearray(damaged.read_bytes())
        content[len(content) // 2] ^= 1
        damaged.write_bytes(content)
        short = pathlib.Path(folder, "short")
        short.write_bytes(content[:100])
        for source in (damaged, short, "/nonexistent", "synthetic:nonsense", "image:/dev/zero",
                       "xml:/dev/null", __file__, "image:", "/dev/tty"):
            done = mpiexec("-n", "1", "--topology", source, "echo", "started")
            expect(done.returncode == 1 and not done.stdout and "--topology" in done.stderr, done)
            done = topo(source)
            expect(done.returncode == 1 and done.stderr.startswith("warren: topo: "), done)
            expect(not done.stdout, done)


@case
def all_forms_say_the_same():
    with tempfile.TemporaryDirectory() as folder:
        xml = pathlib.Path(folder, "kinds.xml")
        xml.write_text(KINDS)
        text = topo(xml).stdout
        for part in ("NUMANode HBM 1 GiB #0 (OS 0)", "PU #1 (OS 1)", "Bandwidth 90000 MiB/s",
                     "(guessed)"):
            expect(part in text, (part, text))
        described = json.loads(topo("--format", "json", xml).stdout)
        expect(described["objects"] == 7, described)
        expect([one["subtype"] for one in described["machine"]["memory"]] == ["HBM", "DRAM"],
               described)
        expect(["HostName", "a <b> & \"c\""] in described["machine"]["infos"] or
               ["HostName", "a <b> & \"c\""] in described["infos"], described)
        for name in ("again.xml", "again.svg", "again.json", "again.txt"):
            expect(topo("-o", pathlib.Path(folder, name), xml).returncode == 0, name)
        expect(json.loads(topo("--format=json", f"{folder}/again.xml").stdout) == described, "XML")
        expect(json.loads(pathlib.Path(folder, "again.json").read_text()) == described, "JSON")
        expect(pathlib.Path(folder, "again.txt").read_text() == text, "text")
        picture = ElementTree.parse(f"{folder}/again.svg").getroot()
        words = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")]
        for part in ("node 0 HBM", "90000 MiB/s", "Core 1", "DRAM"):
            expect(part in words, words)


@case
def this_machine_is_shown_without_a_source():
    done = topo()
    expect(done.returncode == 0 and done.stdout.startswith("Machine ") and "PU #0" in done.stdout,
           done)
    expect("Core #0" in topo("native").stdout, "native")


@case
def hwloc_reads_what_is_written():
    if args.hwloc_user is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        xml = pathlib.Path(folder, "machine.xml")
        expect(topo("-o", xml, MACHINE).returncode == 0, "XML")
        done = run(args.hwloc_user, env={**os.environ, "HWLOC_XMLFILE": str(xml),
                                         "HWLOC_PLUGINS_PATH": "/nonexistent"})
        expect(done.returncode == 0 and done.stdout.startswith("32 "), done)


@case
def a_job_s_ranks_are_seen_where_they_are_bound():
    with subprocess.Popen([args.mpiexec, "-n", "2", "--bind-to", "hwthread", "sleep", "60"],
                          stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
        try:
            deadline = time.monotonic() + 30
            while True:
                done = topo("--job", str(job.pid), "--format", "json")
                ranks = re.findall(r'"ranks": \[([0-9, ]+)\]', done.stdout)
                if sorted(sum((one.split(", ") for one in ranks), [])) == ["0", "1"]:
                    break
                expect(time.monotonic() < deadline, done)
            expect("rank" in topo("--job", str(job.pid)).stdout, "text")
            expect("rank" in topo("--job", str(job.pid), "--format", "svg").stdout, "picture")
        finally:
            job.send_signal(signal.SIGTERM)
    done = topo("--job", "1")
    expect(done.returncode == 1 and "process 1 is no mpiexec" in done.stderr, done)


@case
def mistakes_are_said():
    for words in (["--nonsense"], ["a", "b"], ["--format", "jpeg"], ["--format"], ["-o"], ["-o", ""],
                  ["--job=x"], ["-o", "x.jpeg"], [""], ["publish"], ["publish", "-x"],
                  ["publish", "a", "b", "c"]):
        done = topo(*words)
        expect(done.returncode == 2 and done.stderr.startswith("warren: topo: "), (words, done))
    for words in (["-o", "/nonexistent/a.svg"], ["publish", "/nonexistent/a"],
                  ["-o", "/nonexistent/a.png"]):
        done = topo(*words, *([MACHINE] if words[0] == "-o" else []))
        expect(done.returncode == 1 and "No such file" in done.stderr, done)
    expect(topo("-o", "/dev/full", "--format", "text", MACHINE).returncode == 1, "a full disk")


@case
def pictures_of_points_need_a_tool():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "a.png")
        done = topo("-o", path, MACHINE, env={**os.environ, "PATH": folder})
        expect(done.returncode == 1 and "librsvg2-bin" in done.stderr and not path.exists(), done)


@case
def sanitized_programs_map_it_too():
    for user in args.sanitized:
        done = mpiexec("-n", "2", user)
        expect(done.returncode == 0 and [line[0] for line in loads(done)] == [NODE] * 2, done)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--warren", required=True)
parser.add_argument("--user", required=True)
parser.add_argument("--hwloc-user")
parser.add_argument("--sanitized", action="append", default=[], metavar="USER",
                    help="a program built with a sanitizer")
parser.add_argument("--without-threads", action="store_true",
                    help="no ranks that are threads: sanitizers belong to whole processes")
args = cases.parse(parser)
sys.exit(cases.run(args))
