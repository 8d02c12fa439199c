#!/usr/bin/env python3
"""A debugger's session with a job whose ranks are fibres, by tools/gdb/fibres.py: where each is, its
backtrace, its variables; and the job goes on afterwards.

    fibre_debugger.py MPIEXEC PROGRAM SCRIPT     the program debugged.c beside this file; the exit code is
                                                 77 where processes can't be attached to
"""
import os
import re
import subprocess
import sys
import tempfile

SESSION = """
set pagination off
set confirm off
set debuginfod enabled off
info fibres
fibre all
python
def in_main(command):
    frame = gdb.selected_frame()
    while frame.name() != "main" or "debugged.c" not in str(frame.find_sal().symtab):
        frame = frame.older()
    frame.select()
    gdb.execute(command)
end
fibre 2 python in_main("print own_number")
fibre 2 python in_main("print rank")
fibre 0 python in_main("print rank")
fibre 0 python in_main("set variable ready = 1")
echo TRACE\\n
fibre 1 bt
python
try:
    gdb.execute("fibre 1 nonsense")
except gdb.error as error:
    print("REFUSED", error)
end
fibre 4
"""

READY_SESSION = """
set pagination off
set confirm off
set debuginfod enabled off
info fibres
python
def in_main(command):
    frame = gdb.selected_frame()
    while frame.name() != "main" or "debugged.c" not in str(frame.find_sal().symtab):
        frame = frame.older()
    frame.select()
    gdb.execute(command)
end
fibre 0 python in_main("set variable ready = 1")
fibre 1 python in_main("set variable ready = 1")
fibre 2 python in_main("set variable ready = 1")
fibre 3 python in_main("set variable ready = 1")
fibre 4
"""


def debug(options, arguments, session):
    """What gdb said, and what the job wrote after its first line."""
    with tempfile.NamedTemporaryFile("w", suffix=".gdb") as script:
        script.write(session)
        script.flush()
        with subprocess.Popen([mpiexec, "--ranks", "fibres", "--timeout", "100", "-n", "4", *options, program,
                               *arguments], stdout=subprocess.PIPE, text=True) as job:
            host = job.stdout.readline().split()[-1]  # "waiting in process N"
            done = subprocess.run(["gdb", "-batch", "-p", host, "-x", fibres, "-x", script.name],
                                  capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=90,
                                  check=False)
            if "ptrace: Operation not permitted" in done.stderr:
                job.kill()
                sys.exit(77)
            if "needs a rank from 0 to 3" not in done.stderr: # it may not have got so far
                print(done.stdout, done.stderr)
                job.kill()
                sys.exit(1)
            output = sorted(job.stdout.read().splitlines())
    print(done.stdout, done.stderr)
    return done.stdout, output


mpiexec, program, fibres = sys.argv[1:]
os.environ.pop("WARREN_RANKS", None)
said, output = debug([], [], SESSION)
missing = [what for what in (
    *(rf"(?m)^rank {rank}: waits; worker \d+; in MPI_Recv$" for rank in (1, 2, 3)),
    r"(?m)^rank 0: .*; worker \d+; in \S+",
    r"TRACE\nrank 1: waits; worker \d+\n#1 ", r"(?m)^REFUSED Undefined command",
    # Each of the others waits in its own main, for a message.
    *(rf"(?s)rank {rank}: waits; worker \d+\n#1 .*?MPI_Recv .*? main \(.*?\n(?=rank|\$)" for rank in (1, 2, 3)),
    r"\$1 = 120\n", r"\$2 = 2\n", r"\$3 = 0\n",
) if not re.search(what, said)]
assert not missing, missing
assert output == ["rank 0: 100", "rank 1: 111", "rank 2: 122", "rank 3: 133"], output

# Released by the last one at a barrier, on whose worker they are: they wait no more.
said, output = debug(["--workers", "1"], ["busy"], READY_SESSION)
states = re.findall(r"(?m)^rank \d: (.*?)[,;]", said)
assert sorted(states) == ["ready", "ready", "ready", "runs"], states
assert output == ["rank 0: 100", "rank 1: 111", "rank 2: 122", "rank 3: 133"], output
