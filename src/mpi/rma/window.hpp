// Window: memory that the ranks of a communicator access without the help of its owner (MPI 5.0,
// chapter 12).
//
// Memory of a window is mapped, or of the same address space: then operations are loads, stores and
// the loops of the reduction operations, and are complete when their call returns. Memory that
// another process has given (MPI_Win_create, dynamic windows) is read and written by the kernel
// (peer_memory.hpp), which completes in the call, too. So nobody waits for a target there, and a
// flush is a fence of the processor. Where the kernel refuses that, and on other nodes, targets
// serve operations by messages (served_memory.hpp), which are complete when their call returns,
// too, but for small writes to other nodes: these leave together (collected_puts.hpp).
//
//     extent of the window heap:   control block | memory of rank 0 | rank 1 | …
//
// Thread rule: under the rank's lock, which waits release; what a node's ranks share is in the
// control block. Ranks of other nodes are reached by messages in all windows: each node has an
// extent of its own, with a control block and the memory of its ranks. Invariants
//  1. The accumulate mutex of the target is held while an accumulate operation, of whatever size,
//     reads and writes it: all are atomic to each other, whatever their types and operations are.
//     (An operation of a rank that has been killed may have been done in part.)
//  2. An operation is checked (epoch, displacement, bounds) before it touches anything.
//  3. The window's communicator is its own: nothing else uses its collective slot or its context.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/comm/communicator.hpp"
#include "mpi/datatype/buffer.hpp"
#include "mpi/message/engine.hpp"
#include "mpi/op/op.hpp"
#include "mpi/rma/collected_puts.hpp"
#include "mpi/rma/control.hpp"
#include "mpi/rma/epochs.hpp"
#include "mpi/rma/offered_memory.hpp"
#include "mpi/rma/own_memory.hpp"
#include "mpi/rma/peer_memory.hpp"
#include "mpi/rma/regions.hpp"
#include "mpi/rma/served_memory.hpp"
#include "mpi/rma/shared_part.hpp"
#include "mpi/rma/tuning.hpp"
#include "mpi/rma/window_server.hpp"

namespace warren::rma {

enum class Flavour : std::uint8_t { create, allocate, dynamic, shared };

// Whether the processor shows stores to others in the order in which they were made, after all
// earlier loads, and loads in order, but for loads that overtake stores: x86's total store order.
#if defined(__x86_64__)
inline constexpr bool keeps_order_of_stores = true;
#else
inline constexpr bool keeps_order_of_stores = false;
#endif

// How memory by attribute is had: functions of a later room.
struct Placing {
    // Has pages, which nobody has touched, come from where the criteria say.
    Error (*bind)(const char* criteria, void* pages, std::size_t bytes);
    void (*unbind)(void* pages, std::size_t bytes);
};

// A rank's arguments for a window that is to be made.
struct WindowPlan {
    Flavour flavour = Flavour::create;
    void* base = nullptr; // of MPI_Win_create
    MPI_Aint size = 0;
    MPI_Aint displacement_unit = 1;
    bool contiguous = false; // the ranks' parts of a shared window have no gaps between them
    // Where this rank's part of an allocated window begins is a multiple of it: a power of two, a
    // cache line's size at least.
    // Parts without gaps can't have it, but for rank 0's.
    std::size_t alignment = node::cache_line_bytes;
    const char* criteria = nullptr; // of memory in the extent; null: near the rank
    const Placing* placing = nullptr;
    Error error; // what is wrong with the arguments: the others hear of it
};

class Window {
  public:
    Window(WindowServer& server, message::Engine& engine, comm::Communicator& communicator)
        : server_(server),
          engine_(engine),
          communicator_(communicator),
          process_(engine.rank().slot.process),
          epochs_(communicator.size()),
          regions_(engine.rank().segment, engine.rank().index) {}
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
    ~Window() { server_.remove(communicator_.context()); }

    // Collective: makes the window, or fails at all ranks. Frees nothing of the caller's.
    Error create(WindowPlan& plan);
    // Collective: the end of the window, after which the object can only be destroyed.
    Error end();
    Error check_end() const;

    comm::Communicator& communicator() const { return communicator_; }
    int size() const { return epochs_.ranks(); }
    const Epochs& epochs() const { return epochs_; }

    // --- Synchronisation (synchronisation.cpp)
    Error fence(int assertions);
    Error lock(int type, int target, int assertions);
    Error unlock(int target);
    // The usual case of both: true if they could do it without a wait, else nothing has been done.
    bool lock_at_once(int type, int target);
    bool unlock_at_once(int target);
    Error lock_all(int assertions);
    Error unlock_all();
    Error flush(int target);
    Error flush_all();
    Error post(const comm::Group& group, int assertions);
    Error start(const comm::Group& group, int assertions);
    Error complete();
    Error wait();
    Error test(bool& over);
    // Programs that poll memory with one-sided operations call one of these again and again: now
    // and then another rank gets the processor that it may need to bring what they poll for.
    void poll() {
        if (--polls_left_ == 0) [[unlikely]] {
            give_way_to_others();
        }
    }
    // Completes stores, and sees those of others.
    static void synchronise() { std::atomic_thread_fence(std::memory_order_seq_cst); }
    // Completes this window's operations, by the only thread of its rank. A processor that keeps
    // the order of stores and of loads only lets later loads overtake stores: the next operation
    // that loads waits for them (order_load), so that a flush costs nothing. False: collected
    // writes may be left.
    bool complete_operations() {
        if constexpr (keeps_order_of_stores) {
            std::atomic_signal_fence(std::memory_order_seq_cst); // the compiler keeps the order
            if (std::exchange(has_stored_, false)) {
                server_.loads_wait = true;
                return collected_ == nullptr;
            }
            return true;
        } else {
            synchronise();
            return collected_ == nullptr;
        }
    }
    // Before an operation that loads, and after one has stored.
    void order_load() {
        if (server_.loads_wait) [[unlikely]] {
            synchronise();
            server_.loads_wait = false;
        }
    }
    void note_store() { has_stored_ = true; }

    // --- Operations (operations.cpp, accumulate.cpp). `there`: layout in the target's memory,
    // whose base is of no meaning. Each is complete when it returns, at the origin and at the
    // target, but for writes that are collected.
    Error put(const Buffer& from, int target, MPI_Aint displacement, const Buffer& there) {
        std::byte* place;
        if (from.type->contiguous && is_direct(target, displacement, there, place) &&
            from.bytes() == there.bytes()) [[likely]] {
            note_store();
            store(place, from.base, static_cast<std::size_t>(from.bytes()));
            return {};
        }
        return put_slowly(from, target, displacement, there);
    }
    Error get(const Buffer& to, int target, MPI_Aint displacement, const Buffer& there) {
        std::byte* place;
        if (to.type->contiguous && is_direct(target, displacement, there, place) &&
            to.bytes() == there.bytes()) [[likely]] {
            order_load();
            load(to.base, place, static_cast<std::size_t>(to.bytes()));
            return {};
        }
        return get_slowly(to, target, displacement, there);
    }
    // Where so many bytes of a target's memory are that this rank may load and store now. Null: it
    // may not, by epoch, bounds, or kind of memory.
    std::byte* reach(int target, MPI_Aint displacement, std::uint64_t bytes) {
        if (static_cast<unsigned>(target) >= static_cast<unsigned>(size()) ||
            !epochs_.may_access(target)) [[unlikely]] {
            return nullptr;
        }
        const RankControl& its = control_.rank(target);
        std::int64_t offset;
        if (__builtin_mul_overflow(displacement, its.displacement_unit, &offset) ||
            static_cast<std::uint64_t>(offset) > its.size ||
            bytes > its.size - static_cast<std::uint64_t>(offset) ||
            !(owns_memory_ || its.process == process_)) [[unlikely]] {
            return nullptr;
        }
        // (As numbers: a dynamic window's memory begins at address 0.)
        return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(at(target)) +
                                            static_cast<std::uintptr_t>(offset));
    }
    // Copies what reach() has found, of a few bytes.
    static void copy_short(void* to, const void* from, std::size_t bytes) {
        if (bytes == 8) [[likely]] {
            std::memcpy(to, from, 8);
        } else {
            std::memcpy(to, from, bytes);
        }
    }
    // Adds a 64-bit integer to one that reach() has found; `before` gets what was there;
    // null: nobody wants to know.
    void add(int target, std::byte* place, const void* addend, void* before) {
        std::uint64_t found;
        std::uint64_t sum;
        std::memcpy(&sum, addend, sizeof sum);
        const SharedLock lock(control_.rank(target).accumulate_mutex, mutex_user());
        std::memcpy(&found, place, sizeof found);
        sum += found;
        std::memcpy(place, &sum, sizeof sum);
        note_store();
        if (before != nullptr) {
            std::memcpy(before, &found, sizeof found);
        }
    }
    // Replaces a word that reach() has found if it is `compared`; `before` gets what was there.
    template <typename Word>
    void swap(int target, std::byte* place, const void* replacement, const void* compared,
              void* before) {
        Word found;
        Word wanted;
        Word next;
        std::memcpy(&next, replacement, sizeof next);
        std::memcpy(&wanted, compared, sizeof wanted);
        const SharedLock lock(control_.rank(target).accumulate_mutex, mutex_user());
        std::memcpy(&found, place, sizeof found);
        if (found == wanted) {
            std::memcpy(place, &next, sizeof next);
        }
        note_store();
        std::memcpy(before, &found, sizeof found);
    }
    // Both do so with one element of any predefined type without gaps; `before` may be null. False:
    // nothing has been done, because the type or the operation is none of these.
    bool combine_one(int target, std::byte* place, const coll::Op& op,
                     const datatype::Datatype& type, const void* from, void* before);
    bool swap_one(int target, std::byte* place, const datatype::Datatype& type,
                  const void* replacement, const void* compared, void* before);
    // `result` gets what was there before; null: nobody wants to know.
    Error accumulate(const Buffer& from, const Buffer* result, int target, MPI_Aint displacement,
                     const Buffer& there, const coll::Op& op);
    Error fetch_and_op(const void* from, void* result, const datatype::Datatype& type, int target,
                       MPI_Aint displacement, const coll::Op& op);
    Error compare_and_swap(const void* from, const void* compared, void* result,
                           const datatype::Datatype& type, int target, MPI_Aint displacement);

    // Carries out what a rank has asked for by a message (serve.cpp). False: it waits for the lock;
    // to be called again, with the same `queued`, which is false at first.
    bool serve(int origin, const std::vector<std::byte>& memory, bool& queued,
               std::vector<std::byte>& answer);
    void note(int rank, Notice notice);
    // Offers (offer.hpp). may_offer: whether to make one; the box has room for one. taken: the
    // target has done it, and `before` is what was there. take_offer: the target's part.
    bool may_offer();
    Error offer(int target, OfferCell cell, bool& taken, std::uint64_t& before);
    Error offer_blocks(int target, std::uint64_t first, const OfferedBlocks& blocks, bool& taken);
    void take_offer(int origin, const OfferCell& cell);

    // --- Memory of ranks
    Flavour flavour() const { return flavour_; }
    bool contiguous() const { return contiguous_; }
    // Memory of a rank as this one may load and store it; null: it may not.
    std::byte* memory_of(int rank) const { return reaches(rank) ? at(rank) : nullptr; }
    const RankControl& control_of(int rank) const { return control_.rank(rank); }

    // Regions of a dynamic window (dynamic.cpp).
    Error attach(void* base, MPI_Aint size);
    Error detach(const void* base);

    // --- What hangs on a window; owned by the room of entry points, as with communicators.
    comm::Attributes* attributes = nullptr;
    comm::Info* info = nullptr;
    comm::ErrorHandler* error_handler = nullptr; // null: MPI_ERRORS_ARE_FATAL
    std::string name;
    // The values of predefined attributes point to these.
    struct Values {
        void* base = nullptr;
        MPI_Aint size = 0;
        int displacement_unit = 1;
        int flavour = MPI_WIN_FLAVOR_CREATE;
        int model = MPI_WIN_UNIFIED;
    } values;

  private:
    // A place in a target's memory that an operation may access.
    struct Place {
        std::byte* memory = nullptr; // if it is direct
        std::uint64_t address = 0;   // in the target's address space, if it is not
        bool is_direct = false;      // this rank may load and store it
        int target = 0;
        RankControl* control = nullptr;

        // The target's layout, at this place.
        Buffer laid_out(const Buffer& there) const;
    };

    bool spans_worlds() const;
    bool is_local(int rank) const { return control_.rank(rank).process == process_; }
    // Whether loads and stores reach a rank's memory.
    bool reaches(int rank) const {
        return is_local(rank) || (owns_memory_ && !control_.rank(rank).is_remote());
    }
    std::byte* at(int rank) const {
        const std::uint64_t place = control_.rank(rank).place;
        return owns_memory_ ? part_.base() + place : reinterpret_cast<std::byte*>(place);
    }
    bool spins() const { return !engine_.rank().oversubscribed(); }
    MutexUser mutex_user() const {
        const Rank& rank = engine_.rank();
        return {.segment = &rank.segment, .rank = rank.index, .spins = spins()};
    }

    // Whether the target's elements are one block that reach() gives: the usual case. All others
    // take the slow way, which says what is wrong.
    bool is_direct(int target, MPI_Aint displacement, const Buffer& there, std::byte*& place) {
        if (!there.type->contiguous) [[unlikely]] {
            return false;
        }
        place = reach(target, displacement, static_cast<std::uint64_t>(there.bytes()));
        return place != nullptr;
    }
    // Whether so many bytes are of this rank's memory of the window.
    bool is_own(const std::byte* place, std::size_t bytes) const;
    Error find_place(int target, MPI_Aint displacement, const Buffer& there, Place& place);
    // Whether the data is in memory that the target has attached to the dynamic window.
    Error check_attached(int target, const Buffer& layout);
    Error check_epoch(int target) const;

    void store(std::byte* place, const void* from, std::size_t bytes) const {
        if (bytes < large_bytes) {
            std::memcpy(place, from, bytes);
        } else {
            engine_.copy().put(place, from, bytes);
        }
    }
    void load(void* to, const std::byte* place, std::size_t bytes) const {
        if (bytes < large_bytes) {
            std::memcpy(to, place, bytes);
        } else {
            engine_.copy().get(to, place, bytes, bytes);
        }
    }
    // Calls use(TargetMemory&) for the way to a place: the kernel's copies unless it refuses them.
    template <typename Use>
    Error with_memory(const Place& place, const Buffer& layout, Use use) {
        SharedMutex& mutex = place.control->accumulate_mutex;
        if (place.is_direct) {
            MappedMemory memory(layout, mutex, mutex_user());
            return use(memory);
        }
        if (!place.control->is_remote() && !server_.kernel_refuses()) {
            PeerMemory memory(communicator_.endpoint(place.target), layout, mutex, mutex_user());
            OfferedMemory offered(memory, *this, place.target, layout);
            Error error = use(offered);
            if (memory.refusal() == 0) {
                return error;
            }
            error.drop();
            server_.note_refusal(memory.refusal());
        }
        if (collected_ != nullptr) {
            if (Error error = collected_->send(place.target)) {
                return error;
            }
        }
        ServedMemory memory(server_, *this, place.target, layout);
        return use(memory);
    }
    // Writes a few bytes later. False: nothing has been done.
    bool collect(const Buffer& from, const Place& place, const Buffer& to, Error& error);
    // The collected writes to a target, or to all, are complete there.
    Error complete_collected(int target);
    Error complete_collected();
    Error put_slowly(const Buffer& from, int target, MPI_Aint displacement, const Buffer& there);
    Error get_slowly(const Buffer& to, int target, MPI_Aint displacement, const Buffer& there);
    struct Accumulation;
    static Error check_accumulation(const Accumulation& what);
    static Error accumulate_parts(const Accumulation& what, TargetMemory& memory);
    void accumulate_in_place(const Accumulation& what);

    bool may_touch(const std::byte* place, std::size_t bytes, MemoryUse use);
    bool move_offered(const OfferCell& cell, std::uint64_t& before);
    bool change_offered(const OfferCell& cell, std::uint64_t& before);
    bool write_offered(int origin, const OfferCell& cell);
    bool write_blocks_offered(int origin, const OfferCell& cell, OfferedBlocks blocks);
    Error read_of_origin(int origin, std::uint64_t address, void* to, std::uint64_t bytes);
    bool serve_lock(const ServedHead& head, int origin, bool& queued, ServedAnswer& answer);
    struct Extent;
    struct Part;
    struct Room;
    Error create_by(WindowPlan& plan, const Room& room);
    Error align_parts(const WindowPlan& plan, Room& room) const;
    std::uint64_t place_of_part(std::uint64_t end, int rank, std::uint64_t alignment) const;
    Error add_up(const Part& own, Part& sum);
    std::int64_t ranks_of_flavour(int ranks) const;
    Error share_extent(Extent& extent) const;
    Error exchange_places();
    Error take_extent(const Room& room);
    Error commit_own(const WindowPlan& plan) const;
    void give_extent_back();
    Error agree(Error own) const;
    void settle_place(const WindowPlan& plan, const Room& room);
    Error take_lock(int target, bool exclusive);
    Error take_remote_lock(int target, bool exclusive);
    Error try_shared_locks(std::vector<std::uint8_t>& taken);
    Error give_shared_locks_back(std::vector<std::uint8_t>& taken);
    Error give_lock_back(int target, bool exclusive);
    Error take_all_locks();
    void count_shared_locks(int more);
    void set_posted(int target, int origin) const;
    void set_completed(int origin, int target) const;
    Error await_posts(const std::vector<int>& targets);
    // Whether each origin has completed or ended. `ended`: one that has not completed; -1: none.
    bool is_exposure_over(int& ended) const;
    Error end_exposure(int ended);
    // Polls for what another rank is about to do, without progress: false if it is late, or needs
    // this rank's processor.
    template <typename Done>
    bool polled(Done done) const {
        if (!spins() || engine_.rank().lock.shared()) {
            return done();
        }
        for (std::uint32_t turn = 0; turn < polls_of_a_peer; ++turn) {
            if (done()) {
                return true;
            }
            spin_pause();
        }
        return false;
    }
    void give_way_to_others();
    Error await_offer(int target, OfferCell cell, bool& taken, std::uint64_t& before);

    WindowServer& server_;
    message::Engine& engine_;
    comm::Communicator& communicator_;
    const std::uint32_t process_; // index of this rank's process
    Flavour flavour_ = Flavour::create;
    bool owns_memory_ = false; // it is in the window's extent
    bool contiguous_ = false;  // WindowPlan::contiguous of one rank at least
    SharedPart part_;
    std::uint64_t extent_ = 0; // where it begins; 0: none
    ControlBlock control_;
    Epochs epochs_;
    OfferPolicy offers_;
    std::unique_ptr<CollectedPuts> collected_; // null: there were none
    bool offering_ = false;                    // the box has an offer of one of the rank's threads
    bool has_stored_ = false;                  // since the last flush
    std::uint32_t polls_left_ = polls_per_look;
    std::uint64_t looked_ = 0; // when, in ticks
    bool spans_nodes_ = false;
    bool asks_for_lock_ = false; // a thread waits for the lock of a rank of another node
    // The hold that origins of other nodes have on this rank's lock, by rank; empty: none.
    enum class Lent : std::uint8_t { none, awaited, shared, exclusive };
    std::vector<Lent> lent_;
    int offered_to_ = 0; // the target of the last offer
    // The last page of its own that this rank may touch for others, and in which of its waits.
    struct {
        std::uint64_t wait;
        std::uintptr_t page;
        MemoryUse use;
    } touched_{};
    int leader_ = 0;  // the first of the ranks of this node, which takes the extent
    Regions regions_; // of a dynamic window
};

} // namespace warren::rma
