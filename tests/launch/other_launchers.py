#!/usr/bin/env python3
"""Ranks that another launcher has started, which speaks PMI-1 as Hydra and Slurm do, or PMIx.

    other_launchers.py --program P --pmix FOLDER [--only PART | --case NAME] [--list]

P checks messages between its ranks and prints. The launcher is in this script; of PMIx, in the libpmix of the
folder (pmix.c).
"""
import argparse
import os
import pathlib
import selectors
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cases
from cases import case, expect


class Launcher:
    """Starts `size` ranks and serves them until all have ended."""

    def __init__(self, size, mapping, command):
        self.board = {"PMI_process_mapping": mapping}
        self.waiting = []
        self.aborted = None
        self.ranks = []
        self.sockets = selectors.DefaultSelector()
        for rank in range(size):
            ours, theirs = socket.socketpair()
            os.set_inheritable(theirs.fileno(), True)
            variables = {**os.environ, "PMI_FD": str(theirs.fileno()), "PMI_RANK": str(rank),
                         "PMI_SIZE": str(size)}
            self.ranks.append(subprocess.Popen(command, env=variables, close_fds=False, text=True,
                                               stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            theirs.close()
            self.sockets.register(ours, selectors.EVENT_READ, bytearray())

    def answer(self, sock, line):
        words = dict(word.split("=", 1) for word in line.split(" "))
        match words["cmd"]:
            case "init":
                return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
            case "get_maxes":
                return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024"
            case "get_my_kvsname":
                return "cmd=my_kvsname kvsname=kvs_1"
            case "put":
                self.board[words["key"]] = words["value"]
                return "cmd=put_result rc=0 msg=success"
            case "get":
                found = self.board.get(words["key"])
                return f"cmd=get_result rc={0 if found else -1} value={found}"
            case "barrier_in":
                self.waiting.append(sock)
                if len(self.waiting) == len(self.ranks):
                    for one in self.waiting:
                        self.send(one, "cmd=barrier_out")
                    self.waiting.clear()
                return None
            case "finalize":
                return "cmd=finalize_ack"
            case "abort":
                self.aborted = int(words["exitcode"])
                for rank in self.ranks:
                    rank.kill()
        return None

    @staticmethod
    def send(sock, line):
        try:
            sock.sendall(line.encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has ended

    def run(self):
        while self.sockets.get_map():
            events = self.sockets.select(timeout=60)
            expect(events, "the ranks have not ended")
            for key, _ in events:
                try:
                    data = key.fileobj.recv(4096)
                except ConnectionResetError:  # it was killed before it had read all
                    data = b""
                if not data:
                    self.sockets.unregister(key.fileobj)
                    key.fileobj.close()
                    continue
                key.data.extend(data)
                while b"\n" in key.data:
                    line, _, rest = bytes(key.data).partition(b"\n")
                    key.data[:] = rest
                    if (reply := self.answer(key.fileobj, line.decode())) is not None:
                        self.send(key.fileobj, reply)
        return [rank.communicate(timeout=60) + (rank.returncode,) for rank in self.ranks]


@case
def ranks_of_a_node_are_a_job():
    done = Launcher(4, "(vector,(0,1,4))", [args.program]).run()
    expect(all(code == 0 for _, _, code in done), done)
    expect(sorted(output for output, _, _ in done) ==
           [f"rank {rank} of 4: sum 6\n" for rank in range(4)], done)


@case
def an_abort_ends_all():
    launcher = Launcher(2, "(vector,(0,1,2))", [args.program, "abort"])
    done = launcher.run()
    expect(launcher.aborted == 5 and any("MPI_Abort" in errors for _, errors, _ in done), done)


@case
def what_a_launcher_does_not_say_is_named():
    done = Launcher(2, "what", [args.program]).run()
    expect(all(code != 0 and "PMI_process_mapping" in errors for _, errors, code in done), done)
    variables = {**os.environ, "PMI_FD": "77", "PMI_RANK": "0", "PMI_SIZE": "2"}
    done = subprocess.run([args.program], env=variables, capture_output=True, text=True, check=False)
    expect(done.returncode != 0 and "PMI_FD=77" in done.stderr, done)


def by_pmix(nodes, *arguments):
    """Ranks of a PMIx launcher, one for each letter; gives what they have done, and the launcher's board."""
    with tempfile.TemporaryDirectory() as board:
        ranks = []
        for rank in range(len(nodes)):
            variables = {**os.environ, "PMIX_NAMESPACE": board, "PMIX_RANK": str(rank),
                         "PMIX_TEST_SIZE": str(len(nodes)), "PMIX_TEST_NODES": nodes,
                         "LD_LIBRARY_PATH": args.pmix}
            ranks.append(subprocess.Popen([args.program, *arguments], env=variables, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        if arguments:  # rank 1 ends all
            ranks[1].wait(timeout=60)
            for rank in ranks:
                rank.kill()
        done = [rank.communicate(timeout=60) + (rank.returncode,) for rank in ranks]
        return done, {name.name: name.read_text(errors="replace") if name.is_file() else ""
                      for name in pathlib.Path(board).iterdir()}


@case
def ranks_of_pmix_are_a_job():
    # One node; two, by number and by name, one after the other and in turn; some without a number.
    for nodes, count in (("000", 1), ("4477", 2), ("abab", 2), ("0b", 2), ("0a", 1)):
        done, board = by_pmix(nodes)
        size = len(nodes)
        expect(all(code == 0 for _, _, code in done), (nodes, done))
        expect(sorted(output for output, _, _ in done) ==
               [f"rank {rank} of {size}: sum {size * (size - 1) // 2}\n" for rank in range(size)], (nodes, done))
        expect(all(f"{rank}-finalized" in board for rank in range(size)), board)
        expect(sum("-warren-segment-" in name for name in board) == count, (nodes, board))


@case
def an_abort_reaches_pmix():
    done, board = by_pmix("000", "abort")
    expect(board["1-aborted"].startswith("5 ") and "MPI_Abort" in done[1][1], (board, done))


@case
def a_missing_libpmix_is_named():
    with tempfile.TemporaryDirectory() as folder:
        # (The machine may have a libpmix.)
        (pathlib.Path(folder) / "libpmix.so.2").write_text("no library")
        variables = {**os.environ, "PMIX_NAMESPACE": "job", "PMIX_RANK": "0", "LD_LIBRARY_PATH": folder}
        done = subprocess.run([args.program], env=variables, capture_output=True, text=True, check=False)
    expect(done.returncode != 0 and "libpmix can't be loaded" in done.stderr, done)


@case
def variables_of_a_pmix_that_is_gone_are_named():
    variables = {**os.environ, "PMIX_NAMESPACE": "job", "PMIX_RANK": "0", "LD_LIBRARY_PATH": args.pmix}
    done = subprocess.run([args.program], env=variables, capture_output=True, text=True, check=False)
    expect(done.returncode != 0 and "unset PMIX_RANK" in done.stderr, done)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=os.path.abspath)
    parser.add_argument("--pmix", required=True, type=os.path.abspath)
    args = cases.parse(parser)
    sys.exit(cases.run(args))
