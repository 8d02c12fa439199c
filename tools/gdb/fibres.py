"""For gdb: ranks that are fibres (mpiexec --ranks fibres), in a running process or its core.

    gdb -p PID -x fibres.py       PID is that of warren-rank-host
    (gdb) info fibres             rank, state, worker, and where each is
    (gdb) fibre 3                 a backtrace of rank 3
    (gdb) fibre all               of all
    (gdb) fibre 3 COMMAND         a command of gdb in rank 3's innermost frame

Nothing of the process is changed for that: an unwinder is put in front of the selected thread's
frames, which says that the fibre's called them. So frame 0 is always the thread's own; commands run
in frame 1. Thread-local variables are shown of the thread, not of the fibre.
"""
import re

import gdb
import gdb.unwinder

STATES = ["ready", "waits", "waits or sleeps, with a time limit", "ended", "waits with others"]
GATHERED = STATES[4]
# What warren_fibre_switch leaves on the stack (src/runtime/fibres/x86_64.cpp), above the control words.
SAVED = ["r15", "r14", "r13", "r12", "rbp", "rbx", "rip"]
WORD = 8


def read(address, size):
    memory = gdb.selected_inferior().read_memory(address, size)
    return int.from_bytes(bytes(memory), "little")


def still_waits_for_event(layout, fibre):
    """src/runtime/fibres/fibre.hpp"""
    event_waiters = read(fibre + layout["event_waiters"], WORD)
    return event_waiters != 0 and (read(fibre + layout["ticket"], WORD) ==
                               read(event_waiters + layout["event_waiters_ticket"], WORD))


class Fibre:
    def __init__(self, layout, number):
        base = layout["fibres"] + number * layout["stride"]
        self.number = number
        self.stack = read(base + layout["stack"], WORD)
        self.state = STATES[read(base + layout["state"], 4)]
        if self.state == GATHERED and not still_waits_for_event(layout, base):
            self.state = "ready" # released at once with others: it says so itself when it runs
        self.runs = read(base + layout["on_worker"], 4) != 0 and self.state != "ended"
        worker = read(base + layout["worker"], WORD)
        self.worker = read(worker + layout["worker_number"], 4) if worker else None
        self.thread = read(worker + layout["worker_thread"], 4) if worker else None


def read_layout():
    """src/runtime/fibres/debug.cpp"""
    try:
        base = int(gdb.parse_and_eval("(unsigned long)&warren_fibre_debug"))
    except gdb.error as error:
        raise gdb.GdbError("no fibres: libwarren.so is not there") from error
    names = ["version", "stride", "stack", "state", "on_worker", "worker", "worker_number",
             "worker_thread", "count", "event_waiters", "ticket", "event_waiters_ticket"]
    layout = {name: read(base + 4 * index, 4) for index, name in enumerate(names)}
    if layout["version"] != 2:
        raise gdb.GdbError("this script is of another version of Warren than the process")
    layout["fibres"] = read(base + 4 * len(names), WORD)
    if not layout["fibres"]:
        raise gdb.GdbError("no rank of this process is a fibre")
    return layout


def fibres():
    layout = read_layout()
    return [Fibre(layout, number) for number in range(layout["count"])]


class FibreUnwinder(gdb.unwinder.Unwinder):
    """Has the selected thread's innermost frame be called by a fibre's."""

    def __init__(self):
        super().__init__("warren-fibre")
        self.stack = None
        self.own_stack = None

    def __call__(self, frame):
        if self.stack is None or int(frame.read_register("rsp")) != self.own_stack:
            return None
        integer = gdb.selected_inferior().architecture().integer_type(64, False)
        value = lambda number: gdb.Value(number).cast(integer)
        # It says that it is the fibre's: what it calls lies above it.
        stack = self.stack + WORD * (1 + len(SAVED))
        info = frame.create_unwind_info(FrameId(value(self.stack), value(int(frame.read_register("rip")))))
        for index, name in enumerate(SAVED):
            info.add_saved_register(name, value(read(self.stack + WORD * (1 + index), WORD)))
        info.add_saved_register("rsp", value(stack))
        return info


class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


UNWINDER = FibreUnwinder()
gdb.unwinder.register_unwinder(None, UNWINDER, replace=True)


def thread_of(fibre):
    for thread in gdb.selected_inferior().threads():
        if thread.ptid[1] == fibre.thread:
            return thread
    return None


class InFibre:
    """While it lasts, the selected frame is the fibre's innermost one."""

    def __init__(self, fibre):
        self.fibre = fibre

    def __enter__(self):
        self.thread = gdb.selected_thread()
        if self.fibre.runs:
            thread = thread_of(self.fibre)
            if thread is not None:
                thread.switch()
            gdb.newest_frame().select()
            return self
        gdb.newest_frame().select()
        UNWINDER.own_stack = int(gdb.selected_frame().read_register("rsp"))
        UNWINDER.stack = self.fibre.stack
        gdb.invalidate_cached_frames()
        older = gdb.newest_frame().older()
        if older is not None:
            older.select()
        return self

    def __exit__(self, *_):
        UNWINDER.stack = None
        gdb.invalidate_cached_frames()
        if self.thread is not None and self.thread.is_valid():
            self.thread.switch()


def describe(fibre):
    where = f"worker {fibre.worker}" if fibre.worker is not None else "no worker yet"
    state = f"runs, LWP {fibre.thread}" if fibre.runs else fibre.state
    return f"rank {fibre.number}: {state}; {where}"


def place(fibre):
    """The call of MPI that it is in, or else the innermost function that has a name."""
    if fibre.state == "ended":
        return ""
    with InFibre(fibre):
        frame = gdb.selected_frame()
        names = []
        while frame is not None:
            names.append(frame.name() or "")
            # (MPI_ and PMPI_ are names of one function.)
            call = re.fullmatch(r"(?:long_|P)?(MPI_\w+)", names[-1])
            if call:
                return call[1]
            frame = frame.older()
        return next((name for name in names if name and not name.startswith("warren::fibre::")), "")


class InfoFibres(gdb.Command):
    """Lists the ranks that are fibres: state, worker, and in which function they are."""

    def __init__(self):
        super().__init__("info fibres", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        for fibre in fibres():
            name = place(fibre)
            print(describe(fibre) + (f"; in {name}" if name else ""))


class FibreCommand(gdb.Command):
    """fibre RANK|all [COMMAND]: a command in the innermost frame of a rank, or of each; without
    one, a backtrace."""

    def __init__(self):
        super().__init__("fibre", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        try:
            self.run(argument, from_tty)
        except gdb.error as error: # of a command: gdb would show a Python exception
            raise gdb.GdbError(str(error)) from error

    def run(self, argument, from_tty):
        which, _, command = argument.strip().partition(" ")
        everybody = fibres()
        if which == "all":
            chosen = everybody
        elif which.isdigit() and int(which) < len(everybody):
            chosen = [everybody[int(which)]]
        else:
            raise gdb.GdbError(f"fibre needs a rank from 0 to {len(everybody) - 1}, or 'all'")
        for fibre in chosen:
            # Backtraces begin with frame 0, which is the selected thread's: it is cut off.
            traces = re.fullmatch(r"(bt|where|backtrace|back)( .*)?", command.strip() or "bt")
            if not traces and which != "all":
                with InFibre(fibre):
                    gdb.execute(command, from_tty)
                continue
            print(describe(fibre))
            if fibre.state == "ended":
                continue
            with InFibre(fibre):
                text = gdb.execute(command or "backtrace", False, True)
            lines = text.splitlines()
            if traces and not fibre.runs:
                begin = next((i for i, line in enumerate(lines) if line.startswith("#1 ")), 0)
                lines = lines[begin:]
            print("\n".join(lines))


InfoFibres()
FibreCommand()
