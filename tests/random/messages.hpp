// Messages and their two ends.
#pragma once

#include "program.hpp"

namespace programs {

enum class Mode { standard, synchronous, buffered, ready };
enum class How { blocking, nonblocking, persistent };

struct Message {
    int source = 0; // as its receiver sees it
    int tag = 0;
    Unit unit;
    int units = 0;
    Bits key = 0;
};

// What the status of a receive must say.
struct Expected {
    int source, tag;
    TypePtr type;
    long leaves; // that have come
};
void check_status(const MPI_Status& got, const Expected& expected, const char* what);

// A message's memory at one end: a datatype of its own, and how it is named in the call.
struct End {
    std::shared_ptr<Buffer> buffer;
    Block block;
    void* address = nullptr;
    int count = 0;
    TypePtr type; // the block's, or one with an absolute address

    void place(Draw& own);
    void fill(bool sending, const Message& message, Bits round = 0) const;
};
End make_send(Program& program, const Message& message);
End make_receive(Program& program, const Message& message);

// The operation at one end, with its memory filled.
ActivityPtr watch(Program& program, const CommPtr& comm, const Message& message,
                  const std::shared_ptr<End>& end, bool sending);

struct Plan {
    CommPtr comm;
    Message message;
    int from_side = 0, from = 0, to = 0; // in their groups
    Mode mode = Mode::standard;
    How how = How::nonblocking;
    bool early = false, any_source = false;
    int delay = 0; // steps until it is received
    bool persistent = false;
};
Plan draw_plan(Program& program, Draw& draw, const CommPtr& comm);
// Whether this rank does.
bool sends(Program& program, const Plan& plan);
bool receives(Program& program, const Plan& plan);

} // namespace programs
