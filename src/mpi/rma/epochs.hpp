// Epochs: which of a window's ranks this rank may access, and whose accesses it awaits.
//
// Thread rule: under the rank's lock. Invariants
//  1. Epochs of different kinds don't overlap, but for exposure (MPI_Win_post) beside access.
//  2. locks() counts the targets whose access is shared, exclusive or unchecked.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace warren::rma {

enum class Access : std::uint8_t {
    none,
    shared, // MPI_Win_lock
    exclusive,
    unchecked, // MPI_Win_lock with MPI_MODE_NOCHECK: there is no lock to give back
    started    // MPI_Win_start
};

class Epochs {
  public:
    explicit Epochs(int ranks) : ranks_(ranks) {}

    int ranks() const { return ranks_; }
    bool may_access(int target) const { return everywhere_ || access(target) != Access::none; }
    Access access(int target) const {
        return targets_ != nullptr ? targets_[static_cast<std::size_t>(target)] : Access::none;
    }

    // Fences: open and close access to all.
    void fence(bool opens) {
        fenced_ = opens;
        note_everywhere();
    }

    // Takes the memory for epochs of single targets: what is locked can then be noted.
    void prepare();

    int locks() const { return locks_; }
    void lock(int target, Access access);
    void unlock(int target);

    // MPI_Win_lock_all; `checked`: locks are held.
    bool all_locked() const { return all_locked_; }
    bool all_checked() const { return all_checked_; }
    void lock_all(bool checked);
    void unlock_all();
    bool passive() const { return all_locked_ || locks_ > 0; }
    bool passive(int target) const {
        const Access its = access(target);
        return all_locked_ || (its != Access::none && its != Access::started);
    }

    // MPI_Win_start, with these targets.
    bool has_started() const { return has_started_; }
    const std::vector<int>& started() const { return started_; }
    // The list of targets, to be filled before start().
    std::vector<int>& targets_to_start() { return started_; }
    void start();
    void complete();

    // MPI_Win_post, to these origins.
    bool exposed() const { return exposed_; }
    const std::vector<int>& origins() const { return origins_; }
    // The list of origins, to be filled before post().
    std::vector<int>& origins_to_post() { return origins_; }
    void post() { exposed_ = true; }
    void end_exposure() { exposed_ = false; }

    // No epoch that only another call ends.
    bool none_open() const { return !passive() && !has_started_ && !exposed_; }

  private:
    void note_everywhere() { everywhere_ = fenced_ || all_locked_; }
    Access& place(int target) {
        prepare();
        return targets_[static_cast<std::size_t>(target)];
    }

    int ranks_;
    int locks_ = 0;
    bool everywhere_ = false;
    bool fenced_ = false;
    bool all_locked_ = false;
    bool all_checked_ = false;
    bool has_started_ = false;
    bool exposed_ = false;
    std::unique_ptr<Access[]> targets_; // made by the first epoch of single targets
    std::vector<int> started_;
    std::vector<int> origins_; // that this rank has posted to
};

} // namespace warren::rma
