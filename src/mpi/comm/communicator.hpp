// Communicator: a group of processes and a private space of messages (MPI chapter 7); and the table
// of a rank's communicators and groups.
//
// A communicator owns two contexts, one for the program's point-to-point messages and the next for
// the library's collective ones, the same numbers at every member and at no other communicator of
// the node, or the job, that lives (mpi/job/context_ids.hpp); its first rank takes them.
//
// An intercommunicator connects two groups. Its peers, which messages go to and come from, are the
// remote group; and it has a local intracommunicator, unseen by the program, for what its library
// does within the local group. The two groups have an order, which both sides agree on: one of them
// is the first. united_of() numbers the processes of both.
//
// Life: the handle is one reference, every request that has yet to complete another; freeing the
// handle makes it unfindable, the last reference ends it.
// Thread rule: made, changed and released under the rank's lock. Invariant: the contexts are even,
// odd; 0 means "not a communicator".
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/handle_table.hpp"
#include "base/late_handle_table.hpp"
#include "mpi.h"
#include "mpi/comm/group.hpp"
#include "mpi/comm/rank_map.hpp"
#include "mpi/comm/world.hpp"
#include "mpi/message/send_buffer.hpp"

namespace warren::coll {
struct Levels;
}

namespace warren::comm {

// Contexts that need no agreement: of the world, of MPI_COMM_SELF, and of what communicators are
// made from groups over.
inline constexpr std::uint32_t world_context = 2;
inline constexpr std::uint32_t self_context = 4;
inline constexpr std::uint32_t groups_context = 6;

class Attributes;   // mpi/comm/attributes.hpp
class ErrorHandler; // mpi/comm/error_handler.hpp
class Info;         // mpi/comm/info.hpp
struct Topology;    // mpi/comm/topology.hpp

// A rank's view of a communicator's place in the node's collective slots (mpi/coll/slot_pool.hpp).
struct CollectivePlace {
    static constexpr std::uint32_t none = 0xffffffff;
    static constexpr std::uint32_t unknown = 0xfffffffe; // until the first collective operation
    std::uint32_t slot = none;                           // the world's is slot 0
    // Whether all members are of one address space.
    enum class Space : std::uint8_t { not_known, one, several };
    Space space = Space::not_known;
    // For two ranks: the phases in which this one was the last root to write; a bit for each.
    std::uint8_t written_as_root = 0;
    // Operations left in which this rank delays its first poll (coll::flat::ArrivalWait).
    std::uint8_t delayed_polls = 0;
    std::uint64_t operations = 0;  // that this rank has entered
    std::uint64_t all_arrived = 0; // all ranks are known to have arrived in those before
    union {
        // Data that operations before this one wrote may be read until the arrival after the next.
        std::uint64_t read_late = 0;
        // Without a slot, of ranks of several nodes (mpi/coll/levels.hpp).
        coll::Levels* levels;
    };
    // Its staging areas for data, by kind, as mpi/coll/staging.hpp says; 0: not known yet.
    std::uint16_t staging[3] = {0, 0, 0};
};

class Communicator {
  public:
    Communicator(std::uint32_t context, RankMap map, int own_rank)
        : context_(context), rank_(own_rank), map_(std::move(map)) {}
    // An intercommunicator. `first`: the local group is the first of the two.
    Communicator(std::uint32_t context, RankMap remote, std::unique_ptr<Communicator> local,
                 bool first)
        : context_(context),
          rank_(local->rank_),
          first_(first),
          map_(std::move(remote)),
          local_(std::move(local)) {}
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    // Contexts of messages of the program; of the library's messages inside collective operations.
    std::uint32_t context() const { return context_; }
    std::uint32_t collective_context() const { return context_ + 1; }

    // In the own group, which is the local one of an intercommunicator.
    int rank() const { return rank_; }
    int size() const { return local_ == nullptr ? map_.size() : local_->map_.size(); }
    const RankMap& map() const { return local_ == nullptr ? map_ : local_->map_; }

    // The ranks that messages go to and come from: the remote group of an intercommunicator.
    int peers() const { return map_.size(); }
    const RankMap& peer_map() const { return map_; }
    // Where messages to peer 0 ≤ r < peers() go. For a peer on this node, it is its slot.
    std::uint32_t endpoint(int r) const { return World::endpoint_of(map_[r]); }

    bool inter() const { return local_ != nullptr; }
    // For intercommunicators only.
    Communicator& local() const { return *local_; }
    bool first() const { return first_; }

    // All members have entered MPI_Comm_disconnect: once this one's communicator has ended, nobody
    // sends with its contexts any more.
    void set_disconnected() { disconnected_ = true; }
    bool is_disconnected() const { return disconnected_; }

    // Numbers blocking collective operations for a profile: 1 to 255, then from 0.
    std::uint8_t next_profiled() { return ++profiled_; }

    const char* name() const { return name_ != nullptr ? name_.get() : ""; }
    void set_name(std::string_view name);

    // There may be 10,000s of communicators in a rank: what few of them have is behind
    // pointers, and small members stand together.

    CollectivePlace place;
    // Each null until set; owned by their makers (mpi/), which release them with the communicator.
    ErrorHandler* error_handler = nullptr; // null: MPI_ERRORS_ARE_FATAL
    Attributes* attributes = nullptr;
    Info* info = nullptr;
    std::shared_ptr<const Topology> topology; // null: none
    MPI_Session session = MPI_SESSION_NULL;   // that it comes from; none: from MPI_Init
    // Buffer of buffered sends (MPI_Comm_attach_buffer); null until attached.
    std::unique_ptr<message::SendBuffer> send_buffer;

    // Begun so far, of either kind: the same at all members; it tells their messages apart.
    std::uint32_t nonblocking_collectives = 0;
    std::uint32_t persistent_collectives = 0;
    std::uint32_t duplications = 0; // by MPI_Comm_idup
    // Blocking ones that this rank has announced to the others (mpi/coll/call_agreement.hpp).
    std::uint32_t announced_collectives = 0;

  private:
    friend class Communicators;

    std::uint32_t references_ = 1;
    std::uint32_t context_;
    int rank_;
    bool first_ = true;
    bool freed_ = false; // the handle is gone, a request still holds on
    bool disconnected_ = false;
    std::uint8_t profiled_ = 0; // where there would be padding
    RankMap map_;
    std::unique_ptr<Communicator> local_; // of an intercommunicator
    std::unique_ptr<char[]> name_;
};
static_assert(sizeof(Communicator) <= 192); // what a rank pays per communicator, with its handle

// The processes of both groups of an intercommunicator, the first group's first, as an
// intracommunicator for one operation of the library that all of them take part in. Its messages
// have the context that the local intracommunicators leave unused, the program's.
Communicator united_of(const Communicator& inter);

class Communicators {
  public:
    // Tables of its maps are put on the shelf, for all ranks of the node.
    explicit Communicators(World own_world, TableShelf shelf = TableShelf());

    Communicator& world() { return world_; }
    Communicator& self() { return self_; }
    const World& own_world() const { return own_world_; }

    // The object of a handle; null for MPI_COMM_NULL and what is no communicator.
    Communicator* find(MPI_Comm handle) {
        if (handle == MPI_COMM_WORLD) [[likely]] {
            return &world_;
        }
        if (handle == MPI_COMM_SELF) {
            return &self_;
        }
        Communicator* found = made_.find(handle);
        return found != nullptr && !found->freed_ ? found : nullptr;
    }
    MPI_Comm handle_of(const Communicator& communicator) const;
    // The handle of a Fortran integer; MPI_COMM_NULL when there is none.
    MPI_Comm communicator_of_integer(int integer) const;

    // Makes a communicator of this rank's process. Null when memory is out.
    Communicator* insert(std::uint32_t context, const RankMap& map);
    // As above, for an intercommunicator.
    Communicator* insert_inter(std::uint32_t context, std::uint32_t local_context,
                               const RankMap& local, const RankMap& remote, bool first);
    // For a communicator that was inserted with none yet.
    void set_contexts(Communicator& communicator, std::uint32_t context,
                      std::uint32_t local_context) {
        communicator.context_ = context;
        if (communicator.inter()) {
            communicator.local_->context_ = local_context;
        }
    }
    // A request that has yet to complete keeps its communicator.
    void retain(Communicator& communicator) { ++communicator.references_; }
    // Gives up one reference. True: it was the last; what hangs on the communicator goes (mpi/),
    // and then the communicator itself.
    [[nodiscard]] bool drop(Communicator& communicator) { return --communicator.references_ == 0; }
    void destroy(Communicator& communicator);
    // The program has freed the handle: from now on find() does not know it.
    void hide(Communicator& communicator) { communicator.freed_ = true; }
    std::size_t live() const { return made_.live(); }
    // Visits the world, the own and every made communicator.
    template <typename Visitor>
    void for_each(Visitor visit) {
        visit(world_);
        visit(self_);
        made_.for_each(visit);
    }

    Group* find(MPI_Group handle) {
        return handle == MPI_GROUP_EMPTY ? &empty_ : groups_.find(handle);
    }
    MPI_Group handle_of(const Group& group) const;
    MPI_Group group_of_integer(int integer) const;
    // Makes a group; its handle is MPI_GROUP_EMPTY when it has no member. MPI_GROUP_NULL when
    // memory is out.
    MPI_Group insert_group(RankMap map, MPI_Session session);
    // Frees a group other than the empty one.
    void remove(Group& group);

  private:
    RankMap shared(RankMap map) {
        map.share(shelf_);
        return map;
    }

    const World own_world_;
    TableShelf shelf_;
    Communicator world_;
    Communicator self_;
    HandleTable<Communicator> made_;
    Group empty_;
    LateHandleTable<Group> groups_;
};

} // namespace warren::comm
