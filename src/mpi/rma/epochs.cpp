#include "mpi/rma/epochs.hpp"

#include <cstddef>

namespace warren::rma {

void Epochs::prepare() {
    if (targets_ == nullptr) {
        targets_ = std::make_unique<Access[]>(static_cast<std::size_t>(ranks_));
    }
}

void Epochs::lock(int target, Access access) {
    place(target) = access;
    ++locks_;
    fence(false);
}

void Epochs::unlock(int target) {
    place(target) = Access::none;
    --locks_;
}

void Epochs::lock_all(bool checked) {
    fenced_ = false;
    all_locked_ = true;
    all_checked_ = checked;
    note_everywhere();
}

void Epochs::unlock_all() {
    all_locked_ = false;
    note_everywhere();
}

void Epochs::start() {
    fence(false);
    for (const int target : started_) {
        place(target) = Access::started;
    }
    has_started_ = true;
}

void Epochs::complete() {
    for (const int target : started_) {
        place(target) = Access::none;
    }
    started_.clear();
    has_started_ = false;
}

} // namespace warren::rma
