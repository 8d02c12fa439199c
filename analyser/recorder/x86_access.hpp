// Whether an instruction writes the memory that it accesses. The kernel doesn't say this of a page
// fault, and it distinguishes a read of untouched memory from the placement of its page.
//
// The decoder knows the storing instructions of x86-64 up to AVX-512; others read. For two memory
// operands (string moves, push of memory) the address of the fault decides. Thread rule: plain
// functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::locality {

enum class Access : std::uint8_t {
    unknown, // fewer bytes than the instruction has
    read,
    write,
    string_move, // reads at rsi, writes at rdi
    push_memory, // reads its operand, writes below rsp
};

// Decodes the instruction at `code`, of which `bytes` are available (15 are enough for any).
Access access_of(const std::uint8_t* code, std::size_t bytes);

// Decides what access_of leaves open. The registers are those before the instruction.
bool writes(Access access, std::uint64_t address, std::uint64_t rsi, std::uint64_t rdi,
            std::uint64_t rsp);

} // namespace warren::locality
