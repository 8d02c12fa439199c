// The memory operands of a basic block, grouped by addresses that differ by constants
// (instrument.hpp). Thread rule: none is shared.
#pragma once

#include <cstdint>
#include <vector>

#include "analyser/counts/counters.hpp"
#include "dr_api.h"

namespace warren::locality::counts {

struct Group {
    instr_t* where; // its first access
    opnd_t operand; // of that
    unsigned base_version;
    unsigned index_version;
    std::int64_t low; // of the operand's own displacement, plus the register's distance
    std::int64_t high;
    std::int64_t origin;          // of the first access, like low
    std::vector<Access> accesses; // offsets from the origin at first
};

bool accesses_memory(instr_t* instruction);
// The instruction repeats itself and doesn't end early.
bool is_row(instr_t* instruction);
// The instruction repeats itself and may end early: rep cmps and scas.
bool is_search(instr_t* instruction);
std::uint32_t bytes_of_row(instr_t* instruction); // that one turn accesses
// The opposite of a conditional branch, in its long form; OP_INVALID: it is of another kind.
int opposite_of(instr_t* branch);
// The operand, moved by some bytes.
opnd_t moved(opnd_t operand, std::int64_t bytes);

// The accesses of the program's instructions of [begin, end) that are neither rows nor searches,
// and of `last`, if there is one, which are counted before `end`. A group spans at most `widest`
// bytes.
std::vector<Group> accesses_of(instr_t* begin, instr_t* end, instr_t* last, std::int64_t widest);
// The accesses of one instruction, counted before `where`.
std::vector<Group> accesses_at(instr_t* where, instr_t* instruction, std::int64_t widest);

// Where the addresses of a group are at the beginning of a block that repeats itself, and by how
// much they move per turn.
struct Movement {
    opnd_t operand;
    std::int64_t step;
};
// False: the group doesn't move by a constant. `begin` and `end` are those of accesses_of().
bool movement_of(const Group& group, instr_t* begin, instr_t* end, Movement& movement);

} // namespace warren::locality::counts
