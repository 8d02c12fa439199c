// Control variables: what of the library a program or tool may read, and some of it change.
//
// A variable that has been written keeps its value for this rank: also from before MPI_Init, and
// from one session to the next. Thread rule: reading the table, anybody; values, under the rank's
// lock and the tool's mutex.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "mpi/tool/enumeration.hpp"
#include "mpi/tool/subject.hpp"

namespace warren::tool {

struct ControlVariable {
    const char* name;
    const char* description;
    int verbosity;
    MPI_Datatype datatype; // MPI_INT, MPI_UNSIGNED, MPI_UNSIGNED_LONG_LONG, or MPI_CHAR: a string
    const Enumeration* enumeration = nullptr;
    int scope = MPI_T_SCOPE_CONSTANT;
    std::uint64_t initial = 0; // while there is no rank and nothing has been written
    // Null: the value is `initial`, or what has been written.
    std::uint64_t (*read)(const Subject& subject) = nullptr;
    // Puts a written value into effect; null: whoever needs it asks for it, or it can't be written.
    void (*write)(const Subject& subject, std::uint64_t value) = nullptr;
    const char* (*text)() = nullptr; // of a string

    bool writable() const { return scope == MPI_T_SCOPE_LOCAL || scope == MPI_T_SCOPE_ALL_EQ; }
    // Elements of a value: the length of a string, with its end.
    int count() const;
    // Bytes of an element.
    std::size_t element_bytes() const;
};

std::span<const ControlVariable> control_variables();

// The index of the variable that says which waits are events.
int long_wait_variable();

// The values that have been written, by variable.
class Settings {
  public:
    std::uint64_t read(int variable, const Subject* subject) const;
    void write(int variable, std::uint64_t value, const Subject* subject);
    // Puts all that has been written into effect, for a rank that has just been made.
    void apply(const Subject& subject) const;

  private:
    static constexpr std::size_t most = 32;
    std::optional<std::uint64_t> written_[most];
};

} // namespace warren::tool
