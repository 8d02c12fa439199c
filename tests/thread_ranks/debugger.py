#!/usr/bin/env python3
"""A debugger's session with a job whose ranks are threads: their programs, variables and stacks.

    debugger.py MPIEXEC PROGRAM     the program debugged.c beside this file; the exit code is 77 where
                                    processes can't be attached to
"""
import os
import re
import subprocess
import sys
import tempfile

# Selects the first frame that is debugged.c's main with this rank.
SESSION = """
set pagination off
set confirm off
set debuginfod enabled off
info threads
break ranks_meet
python
def select_rank(number):
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        frame = gdb.newest_frame()
        while frame is not None:
            if frame.name() == "main" and "debugged.c" in str(frame.find_sal().symtab):
                frame.select()
                if gdb.parse_and_eval("rank") == number:
                    return
            frame = frame.older()
end
python select_rank(2)
backtrace
print own_number
python select_rank(0)
print own_number
set variable ready = 1
continue
print own_number
continue
print own_number
continue
print own_number
continue
"""

mpiexec, program = sys.argv[1:]
os.environ.pop("WARREN_RANKS", None)
with tempfile.NamedTemporaryFile("w", suffix=".gdb") as script:
    script.write(SESSION)
    script.flush()
    with subprocess.Popen([mpiexec, "--ranks", "threads", "--timeout", "100", "-n", "3", program],
                          stdout=subprocess.PIPE, text=True) as job:
        host = job.stdout.readline().split()[-1]  # "waiting in process N"
        done = subprocess.run(["gdb", "-batch", "-p", host, "-x", script.name], capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=90, check=False)
        if "ptrace: Operation not permitted" in done.stderr:
            job.kill()
            sys.exit(77)
        output = sorted(job.stdout.read().splitlines())
said = done.stdout
print(said, done.stderr)
missing = [what for what in (
    r"LWP.*\"rank 2\"",                               # the name of its thread
    r"Breakpoint 1 at .*3 locations",                 # one in each image
    r"MPI_Recv .*\n#\d+ +0x\w+ in main \(argc=1",     # rank 2 waits
    r"\$1 = 120\n", r"\$2 = 100\n",
    r"hit Breakpoint 1\.\d, ranks_meet \(rank=0\)", r"hit Breakpoint 1\.\d, ranks_meet \(rank=1\)",
    r"hit Breakpoint 1\.\d, ranks_meet \(rank=2\)",
) if not re.search(what, said)]
assert not missing, missing
values = sorted(re.findall(r"\$[345] = (\d+)\n", said))
assert values == ["100", "110", "120"], values
assert output == ["rank 0: 100", "rank 1: 111", "rank 2: 122"], output
