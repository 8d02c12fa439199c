// KindTable: who handles the cells of each kind (protocol.hpp), but for eager messages, which the
// engine takes itself.
//
// The parts of the engine register their kinds when it is made, and rooms above it theirs before
// any rank can send one: when the rank's context is made. Thread rule: under the rank's lock.
#pragma once

#include <cstddef>

#include "base/invariant.hpp"
#include "mpi/message/protocol.hpp"

namespace warren::message {

class KindTable {
  public:
    using Handler = void (*)(void* owner, const transport::Arrival& arrival);

    void add(transport::CellKind kind, void* owner, Handler handler) {
        WARREN_INVARIANT(kind < kind::limit && entries_[kind].handler == nullptr,
                         "kinds: one handler for each kind of cell");
        entries_[kind] = {handler, owner};
    }
    // As above, for a member function.
    template <auto Function, typename Owner>
    void add(transport::CellKind kind, Owner& owner) {
        add(kind, &owner, [](void* self, const transport::Arrival& arrival) {
            (static_cast<Owner*>(self)->*Function)(arrival);
        });
    }

    // False: nobody handles its kind.
    bool handle(const transport::Arrival& arrival) const {
        const std::size_t kind = arrival.header.kind;
        if (kind >= kind::limit || entries_[kind].handler == nullptr) [[unlikely]] {
            return false;
        }
        entries_[kind].handler(entries_[kind].owner, arrival);
        return true;
    }

  private:
    struct Entry {
        Handler handler;
        void* owner;
    };

    Entry entries_[kind::limit] = {};
};

} // namespace warren::message
