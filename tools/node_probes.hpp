// What the kernel lets processes of this node do, found out by doing it. For `warren node` and
// `warren doctor`. Thread rule: one thread; they fork and wait for their children.
#pragma once

#include <string>

namespace warren::tools {

struct Probe {
    bool allowed = false;
    std::string refusal = {}; // "process_vm_readv: Operation not permitted"; empty: unknown
};

// A process reads the memory of a sibling, as ranks do (which allow it to their launcher's
// descendants). Large messages can then be copied once.
Probe probe_single_copy();
// Files without names, in which a job's shared memory is.
Probe probe_memory_files();
// The kernel makes fences on other processors, so that messages need none.
bool probe_sleeper_fence();
// Queues of system calls, by which ranks may wait for memory and network at once.
Probe probe_io_uring();

// The value of kernel.yama.ptrace_scope; empty: the kernel has no such rule.
std::string ptrace_scope();

} // namespace warren::tools
