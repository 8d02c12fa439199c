// Whether an instruction writes the memory that it accesses: what the kernel doesn't say of a page
// fault, and what tells the reading of untouched memory from its placement.
//
// It knows the instructions of x86-64 that store, up to AVX-512; what it doesn't know reads. Of
// those with two memory operands (string moves, push of memory) the address of the fault decides.
// Thread rule: plain functions.
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

// Of the instruction at `code`, of which `bytes` are there (15 are enough for any).
Access access_of(const std::uint8_t* code, std::size_t bytes);

// Decides what access_of leaves open. The registers are those before the instruction.
bool writes(Access access, std::uint64_t address, std::uint64_t rsi, std::uint64_t rdi,
            std::uint64_t rsp);

} // namespace warren::locality
