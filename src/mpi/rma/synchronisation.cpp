// Synchronisation of windows: fences, locks, and the epochs of groups.
//
// Most operations are complete when their calls return: what is left to do here is to complete
// collected writes, to order operations, and to wait for other ranks. Post: the bit of the target
// is set at each origin, which waits for it in start. Complete: the origin counts itself at each
// target, which waits for the sum. Ranks of other nodes are told to do so themselves.

#include "mpi/coll/collectives.hpp"
#include "mpi/rma/lock.hpp"
#include "mpi/rma/remote_lock.hpp"
#include "mpi/rma/wait_reason.hpp"
#include "mpi/rma/window.hpp"

namespace warren::rma {

namespace {

Error check_assertions(int assertions, int known) {
    if ((assertions & ~known) != 0) {
        return fail(MPI_ERR_ASSERT, "assert = %d contains bits that have no meaning here",
                    assertions);
    }
    return {};
}

constexpr int lock_assertions = MPI_MODE_NOCHECK;
constexpr int fence_assertions =
    MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
constexpr int post_assertions = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT;

// The error for an open epoch that another call ends.
Error wrong_epoch(const Epochs& epochs) {
    return fail(MPI_ERR_RMA_SYNC, "%s",
                epochs.all_locked()    ? "the epoch of MPI_Win_lock_all is open"
                : epochs.locks() > 0   ? "an epoch of MPI_Win_lock is open"
                : epochs.has_started() ? "the epoch of MPI_Win_start is open"
                                       : "the epoch of MPI_Win_post is open");
}

// The members of a group as ranks of the window.
Error ranks_of(const comm::Communicator& communicator, const comm::Group& group,
               std::vector<int>& ranks) {
    ranks.resize(static_cast<std::size_t>(group.size()));
    for (int member = 0; member < group.size(); ++member) {
        const int rank = communicator.map().rank_of(group.map[member]);
        if (rank == MPI_UNDEFINED) {
            return fail(MPI_ERR_GROUP, "rank %d of the group is not in the window's", member);
        }
        ranks[static_cast<std::size_t>(member)] = rank;
    }
    return {};
}

// A row of bits of ranks (ControlBlock).
std::uint64_t bit_of(int rank) {
    return std::uint64_t{1} << (static_cast<unsigned>(rank) % 64);
}

std::size_t word_of(int rank) {
    return static_cast<std::size_t>(rank) / 64;
}

void set_bit(std::atomic<std::uint64_t>* row, int rank) {
    row[word_of(rank)].fetch_or(bit_of(rank), std::memory_order_release);
}

bool has_bit(const std::atomic<std::uint64_t>* row, int rank) {
    return (row[word_of(rank)].load(std::memory_order_acquire) & bit_of(rank)) != 0;
}

void clear_bits(std::atomic<std::uint64_t>* row, const std::vector<int>& ranks) {
    for (auto rank = ranks.begin(); rank != ranks.end();) {
        const std::size_t word = word_of(*rank);
        std::uint64_t bits = 0;
        for (; rank != ranks.end() && word_of(*rank) == word; ++rank) {
            bits |= bit_of(*rank);
        }
        row[word].fetch_and(~bits, std::memory_order_relaxed);
    }
}

} // namespace

Error Window::fence(int assertions) {
    if (Error error = check_assertions(assertions, fence_assertions)) {
        return error;
    }
    if (!epochs_.none_open()) {
        return wrong_epoch(epochs_);
    }
    Error collected = complete_collected();
    synchronise();
    // Also without preceding operations: an operation begins at once, so its target must have come.
    Error error = coll::Collectives(engine_, communicator_).barrier();
    epochs_.fence((assertions & MPI_MODE_NOSUCCEED) == 0);
    return first_of(collected, error);
}

Error Window::lock(int type, int target, int assertions) {
    if (type != MPI_LOCK_EXCLUSIVE && type != MPI_LOCK_SHARED) {
        return fail(MPI_ERR_LOCKTYPE,
                    "lock_type = %d is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE", type);
    }
    if (Error error = check_assertions(assertions, lock_assertions)) {
        return error;
    }
    if (target == MPI_PROC_NULL) {
        return {};
    }
    if (epochs_.all_locked() || epochs_.has_started()) {
        return wrong_epoch(epochs_);
    }
    if (epochs_.access(target) != Access::none) {
        return fail(MPI_ERR_RMA_SYNC, "the lock of rank %d is held already", target);
    }
    if ((assertions & MPI_MODE_NOCHECK) != 0) {
        epochs_.lock(target, Access::unchecked);
        return {};
    }
    const bool exclusive = type == MPI_LOCK_EXCLUSIVE;
    epochs_.prepare();
    count_shared_locks(exclusive ? 0 : 1);
    if (Error error = take_lock(target, exclusive)) {
        count_shared_locks(exclusive ? 0 : -1);
        return error;
    }
    epochs_.lock(target, exclusive ? Access::exclusive : Access::shared);
    return {};
}

void Window::give_way_to_others() {
    polls_left_ = polls_per_look;
    const WaitPolicy& waits = engine_.rank().waits;
    if (!waits.shares_processor && waits.functions == nullptr) {
        engine_.look();
        return;
    }
    engine_.progress();
    const std::uint64_t now = fibre::ticks();
    // A program that computes in between keeps its processor.
    if (now - looked_ < polls_per_look * wait_policy::poll_ticks) {
        RankLock& lock = engine_.rank().lock;
        lock.unlock();
        if (waits.functions == nullptr || waits.functions->found_nothing(now - looked_)) {
            give_way();
        }
        lock.lock();
    }
    looked_ = fibre::ticks();
}

Error Window::unlock(int target) {
    if (target == MPI_PROC_NULL) {
        return {};
    }
    const Access access = epochs_.access(target);
    if (access == Access::none || access == Access::started) {
        return fail(MPI_ERR_RMA_SYNC, "the lock of rank %d is not held", target);
    }
    Error collected = complete_collected(target);
    Error error;
    if (access == Access::unchecked) {
        synchronise();
    } else { // which completes stores
        error = give_lock_back(target, access == Access::exclusive);
        count_shared_locks(access == Access::shared ? -1 : 0);
    }
    epochs_.unlock(target);
    poll();
    return first_of(collected, error);
}

bool Window::lock_at_once(int type, int target) {
    const bool exclusive = type == MPI_LOCK_EXCLUSIVE;
    if ((!exclusive && type != MPI_LOCK_SHARED) ||
        static_cast<unsigned>(target) >= static_cast<unsigned>(size()) || epochs_.all_locked() ||
        epochs_.has_started() || epochs_.access(target) != Access::none ||
        control_.rank(target).is_remote()) {
        return false;
    }
    epochs_.prepare();
    count_shared_locks(exclusive ? 0 : 1);
    if (!WindowLock(engine_, communicator_, control_, target).try_take(exclusive)) {
        count_shared_locks(exclusive ? 0 : -1);
        return false;
    }
    epochs_.lock(target, exclusive ? Access::exclusive : Access::shared);
    return true;
}

bool Window::unlock_at_once(int target) {
    if (static_cast<unsigned>(target) >= static_cast<unsigned>(size())) {
        return false;
    }
    const Access access = epochs_.access(target);
    if ((access != Access::exclusive && access != Access::shared) ||
        control_.rank(target).is_remote()) {
        return false;
    }
    WindowLock(engine_, communicator_, control_, target).give_back(access == Access::exclusive);
    count_shared_locks(access == Access::shared ? -1 : 0);
    epochs_.unlock(target);
    poll();
    return true;
}

Error Window::take_lock(int target, bool exclusive) {
    if (control_.rank(target).is_remote()) [[unlikely]] {
        return take_remote_lock(target, exclusive);
    }
    return WindowLock(engine_, communicator_, control_, target).take(exclusive);
}

// This rank has one place in the queues of a node: a thread asks again and again while another one
// of its rank waits.
Error Window::take_remote_lock(int target, bool exclusive) {
    RemoteLock lock(server_, *this, target);
    bool taken = false;
    while (asks_for_lock_) {
        Error error = lock.try_take(exclusive, taken);
        if (error || taken) {
            return error;
        }
        RankLock& rank_lock = engine_.rank().lock;
        rank_lock.unlock();
        give_way();
        rank_lock.lock();
    }
    asks_for_lock_ = true;
    Error error = lock.take(exclusive);
    asks_for_lock_ = false;
    return error;
}

Error Window::give_lock_back(int target, bool exclusive) {
    if (control_.rank(target).is_remote()) [[unlikely]] {
        return RemoteLock(server_, *this, target).give_back(exclusive);
    }
    WindowLock(engine_, communicator_, control_, target).give_back(exclusive);
    return {};
}

// Counted before they are taken, until they have been given back (lock.hpp, invariant 3).
void Window::count_shared_locks(int more) {
    std::atomic<std::uint32_t>& locks = control_.rank(communicator_.rank()).shared_locks;
    locks.store(locks.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(more),
                std::memory_order_release);
}

// Those that are free. `taken`, by rank: which this one has, before and after.
Error Window::try_shared_locks(std::vector<std::uint8_t>& taken) {
    std::vector<int> remote;
    for (int target = 0; target < communicator_.size(); ++target) {
        std::uint8_t& its = taken[static_cast<std::size_t>(target)];
        if (its != 0) {
            continue;
        }
        if (control_.rank(target).is_remote()) {
            remote.push_back(target);
            continue;
        }
        its = WindowLock(engine_, communicator_, control_, target).try_take(false) ? 1 : 0;
        if (its == 0) {
            return {};
        }
    }
    return ask_shared_locks(server_, *this, ServedKind::try_lock, remote, taken);
}

Error Window::give_shared_locks_back(std::vector<std::uint8_t>& taken) {
    std::vector<int> remote;
    for (int target = 0; target < communicator_.size(); ++target) {
        if (std::exchange(taken[static_cast<std::size_t>(target)], 0) == 0) {
            continue;
        }
        if (control_.rank(target).is_remote()) {
            remote.push_back(target);
        } else {
            WindowLock(engine_, communicator_, control_, target).give_back(false);
        }
    }
    return ask_shared_locks(server_, *this, ServedKind::unlock, remote, taken);
}

// Never waits for one lock while it holds others: who holds that one may wait for these.
Error Window::take_all_locks() {
    const int ranks = communicator_.size();
    std::vector<std::uint8_t> taken(static_cast<std::size_t>(ranks));
    count_shared_locks(ranks);
    while (true) {
        Error error = try_shared_locks(taken);
        const auto held = std::find(taken.begin(), taken.end(), 0);
        if (!error && held == taken.end()) {
            return {};
        }
        Error given = give_shared_locks_back(taken);
        if (error) {
            given.drop();
        } else {
            error = given ? given : take_lock(static_cast<int>(held - taken.begin()), false);
        }
        if (error) {
            count_shared_locks(-ranks);
            return error;
        }
        *held = 1; // the lock that has been waited for
    }
}

Error Window::lock_all(int assertions) {
    if (Error error = check_assertions(assertions, lock_assertions)) {
        return error;
    }
    if (epochs_.passive() || epochs_.has_started()) {
        return wrong_epoch(epochs_);
    }
    const bool checked = (assertions & MPI_MODE_NOCHECK) == 0;
    if (checked) {
        if (Error error = take_all_locks()) {
            return error;
        }
    }
    epochs_.lock_all(checked);
    return {};
}

Error Window::unlock_all() {
    if (!epochs_.all_locked()) {
        return fail(MPI_ERR_RMA_SYNC, "MPI_Win_lock_all has not been called");
    }
    Error collected = complete_collected();
    synchronise();
    Error error;
    if (epochs_.all_checked()) {
        std::vector<std::uint8_t> taken(static_cast<std::size_t>(communicator_.size()), 1);
        error = give_shared_locks_back(taken);
        count_shared_locks(-communicator_.size());
    }
    epochs_.unlock_all();
    poll();
    return first_of(collected, error);
}

Error Window::flush(int target) {
    if (target != MPI_PROC_NULL && !epochs_.passive(target)) {
        return fail(MPI_ERR_RMA_SYNC, "the lock of rank %d is not held", target);
    }
    synchronise();
    Error error = complete_collected(target);
    poll();
    return error;
}

Error Window::flush_all() {
    if (!epochs_.passive()) {
        return fail(MPI_ERR_RMA_SYNC, "no lock is held");
    }
    synchronise();
    Error error = complete_collected();
    poll();
    return error;
}

Error Window::post(const comm::Group& group, int assertions) {
    if (Error error = check_assertions(assertions, post_assertions)) {
        return error;
    }
    if (epochs_.exposed()) {
        return wrong_epoch(epochs_);
    }
    std::vector<int>& origins = epochs_.origins_to_post();
    if (Error error = ranks_of(communicator_, group, origins)) {
        return error;
    }
    epochs_.post();
    if ((assertions & MPI_MODE_NOCHECK) != 0) {
        synchronise();
        return {};
    }
    for (const int origin : origins) {
        if (control_.rank(origin).is_remote()) [[unlikely]] {
            server_.tell(*this, origin, Notice::posted);
            continue;
        }
        set_posted(communicator_.rank(), origin);
        engine_.rank().ring(communicator_.endpoint(origin));
    }
    return {};
}

void Window::set_posted(int target, int origin) const {
    set_bit(control_.posts(origin), target);
}

void Window::set_completed(int origin, int target) const {
    set_bit(control_.completions(target), origin);
}

Error Window::start(const comm::Group& group, int assertions) {
    if (Error error = check_assertions(assertions, lock_assertions)) {
        return error;
    }
    if (epochs_.passive() || epochs_.has_started()) {
        return wrong_epoch(epochs_);
    }
    std::vector<int>& targets = epochs_.targets_to_start();
    if (Error error = ranks_of(communicator_, group, targets)) {
        return error;
    }
    epochs_.prepare();
    if ((assertions & MPI_MODE_NOCHECK) == 0) {
        if (Error error = await_posts(targets)) {
            return error;
        }
    }
    epochs_.start();
    return {};
}

// Takes the posts only when all are there: a start that has failed can be tried with other targets.
Error Window::await_posts(const std::vector<int>& targets) {
    std::atomic<std::uint64_t>* posts = control_.posts(communicator_.rank());
    for (const int target : targets) {
        engine_.wait_until(
            [&] { return has_bit(posts, target) || has_ended(engine_, communicator_, target); },
            wait_reason(engine_, communicator_, target, "a window"), BroughtBy::others);
        if (!has_bit(posts, target)) {
            return fail(MPI_ERR_PROC_ABORTED, "rank %d has ended, and will not call MPI_Win_post",
                        target);
        }
    }
    clear_bits(posts, targets);
    return {};
}

Error Window::complete() {
    if (!epochs_.has_started()) {
        return fail(MPI_ERR_RMA_SYNC, "MPI_Win_start has not been called");
    }
    Error collected = complete_collected();
    synchronise();
    for (const int target : epochs_.started()) {
        if (control_.rank(target).is_remote()) [[unlikely]] {
            server_.tell(*this, target, Notice::completed);
            continue;
        }
        set_completed(communicator_.rank(), target);
        engine_.rank().ring(communicator_.endpoint(target));
    }
    epochs_.complete();
    return collected;
}

// An origin that goes on is awaited even if another one has ended: until it completes, it accesses
// the memory, and its completion belongs to this exposure.
bool Window::is_exposure_over(int& ended) const {
    const std::atomic<std::uint64_t>* completions = control_.completions(communicator_.rank());
    ended = -1;
    for (const int origin : epochs_.origins()) {
        if (has_bit(completions, origin)) {
            continue;
        }
        if (!has_ended(engine_, communicator_, origin)) {
            return false;
        }
        // (It may have completed before it ended.)
        ended = has_bit(completions, origin) ? ended : origin;
    }
    return true;
}

Error Window::end_exposure(int ended) {
    clear_bits(control_.completions(communicator_.rank()), epochs_.origins());
    epochs_.end_exposure();
    if (ended < 0) {
        return {};
    }
    return fail(MPI_ERR_PROC_ABORTED, "rank %d has ended, and will not call MPI_Win_complete",
                ended);
}

Error Window::wait() {
    if (!epochs_.exposed()) {
        return fail(MPI_ERR_RMA_SYNC, "MPI_Win_post has not been called");
    }
    int ended = -1;
    const auto is_over = [&] { return is_exposure_over(ended); };
    if (!polled(is_over)) {
        engine_.wait_until(is_over, wait_reason(engine_, communicator_, MPI_ANY_SOURCE, "a window"),
                           BroughtBy::others);
    }
    return end_exposure(ended);
}

Error Window::test(bool& over) {
    if (!epochs_.exposed()) {
        return fail(MPI_ERR_RMA_SYNC, "MPI_Win_post has not been called");
    }
    int ended = -1;
    over = is_exposure_over(ended);
    if (!over) {
        engine_.look();
        over = is_exposure_over(ended);
    }
    if (!over) {
        return {};
    }
    Error error = end_exposure(ended);
    over = !error;
    return error;
}

} // namespace warren::rma
