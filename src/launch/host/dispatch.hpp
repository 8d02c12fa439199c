// The process's dispatcher of signals, which the kernel gives to any thread: the handler of the
// rank that a signal is for runs, in a thread of that rank where possible.
//
// Thread rule: any thread, also in signal handlers; prepare_dispatch before there are others.
#pragma once

#include <csignal>
#include <cstdint>

#include "launch/host/signal_queue.hpp"

namespace warren::launch {

void prepare_dispatch(bool fibres);

// The process's action for signals of which ranks have their own.
void dispatch(int number, siginfo_t* information, void* context);
void install_dispatcher(int number, int flags);

bool is_ignored_by_default(int number);

// Signals are blocked so while the handler of one runs.
Mask blocked_by_handler(const struct sigaction& action, int number);

// The calling thread acts on a signal for the rank. False: no handler has run.
bool deliver_by_caller(std::uint32_t rank, siginfo_t& information);
// Acts on a signal for the calling rank now, unless it has it blocked.
void act_on_signal(std::uint32_t rank, siginfo_t& information);
// A signal for this rank that is a fibre: its handler runs in the fibre itself. False, and errno:
// too many are queued.
bool offer_to_fibre(std::uint32_t rank, siginfo_t& information);
// The signal comes to a rank of any kind. False, and errno: too many are queued.
bool send_to_rank(std::uint32_t rank, siginfo_t& information);
// Whether a signal that the calling thread has got from the kernel, as it waits for it, is for its
// rank. If not, whoever it is for has got it.
bool is_for_caller(siginfo_t& information);

} // namespace warren::launch
