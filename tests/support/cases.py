"""Cases of a test script: functions that the script marks, chosen by name and run one by one.

    sys.path.insert(0, …)       # this folder
    import cases

    @cases.case
    def something_holds():
        cases.expect(1 + 1 == 2, "what was seen instead")

    parser = argparse.ArgumentParser(); …
    args = cases.parse(parser)
    sys.exit(cases.run(args))
"""
import os
import subprocess
import time

CASES = {}

# What ranks are, scripts say themselves.
os.environ.pop("WARREN_RANKS", None)


def case(function):
    CASES[function.__name__] = function
    return function


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def wait_until(condition, what, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < deadline, what)
        time.sleep(0.02)


def job(mpiexec, *arguments, **options):
    """A finished job of this mpiexec, with what it has printed."""
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("timeout", 120)
    return subprocess.run([mpiexec, *arguments], capture_output=True, text=True, check=False,
                          **options)


def parse(parser):
    """The script's arguments with those that choose cases; mpiexec is found from any folder."""
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--only", default="", help="part of the names of the cases to run")
    parser.add_argument("--case", help="the name of the case to run")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    args = parser.parse_args()
    if "/" in args.mpiexec:
        args.mpiexec = os.path.abspath(args.mpiexec)
    return args


def run(args):
    """The script's exit status."""
    failures = chosen = 0
    for name, function in CASES.items():
        if args.only not in name or args.case not in (None, name):
            continue
        chosen += 1
        if args.list:
            print(name)
            continue
        begin = time.monotonic()
        try:
            function()
        except Exception as problem:  # the next case is worth running
            failures += 1
            print(f"{name}: FAILED: {type(problem).__name__}: {problem}", flush=True)
        else:
            print(f"{name:60} passed ({time.monotonic() - begin:.1f} s)", flush=True)
    if chosen == 0:
        print("no case has this name")
    return 1 if failures or chosen == 0 else 0
