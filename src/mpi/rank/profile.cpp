#include "mpi/rank/profile.hpp"

#include <algorithm>

#include "base/futex.hpp"
#include "runtime/fibres/switch.hpp"

namespace warren {

using profile::LastArrival;
using profile::Row;
using profile::RowKind;

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

void note(profile::Moment& moment) {
    moment.ticks.store(fibre::ticks(), relaxed);
    moment.ns.store(monotonic_ns(), std::memory_order_release); // says that both are there
}

} // namespace

Profile::Profile(const node::Segment& segment, std::uint32_t rank)
    : rank_(rank), ranks_(segment.ranks()), columns_(ranks_) {
    if (segment.units(profile::records) == 0) {
        return;
    }
    record_ = reinterpret_cast<profile::ProfileRecord*>(segment.unit(profile::records, rank));
    last_arrivals_ = segment.at(profile::last_arrivals);
    if (record_->begin.ns.load(relaxed) == 0) {
        note(record_->begin);
    }
    record_->end.ns.store(0, relaxed); // a session has taken it up again
}

Profile::~Profile() {
    if (on()) {
        note(record_->end);
    }
}

void Profile::begin(std::uint32_t procedure, Call& call) const {
    // For end(): the rows of many ranks push each other out of a processor's cache.
    __builtin_prefetch(&record_->rows[place_of(profile::key_of(RowKind::call, procedure, 0))], 1);
    call = {.begin = fibre::ticks(), .bytes = 0, .tag = 0, .collective = false, .waits = false};
}

LastArrival& Profile::last_arrival(std::uint64_t tag) const {
    const auto context = static_cast<std::uint32_t>(tag >> 32);
    const std::uint32_t place = (context >> 1) % profile::communicators_apart;
    return last_arrivals_[place * profile::operations_apart + tag % profile::operations_apart];
}

void Profile::begin_collective(Call& call, Pattern pattern, bool is_root, std::uint64_t bytes,
                               std::uint32_t context, std::uint32_t number) {
    call.collective = true;
    call.bytes = bytes;
    if (pattern == Pattern::none) {
        return;
    }
    ++collectives_;
    call.tag = std::uint64_t{context} << 32 | number;
    call.waits = pattern == Pattern::all || is_root == (pattern == Pattern::to_root);
    if (pattern == Pattern::from_root && !is_root) {
        return;
    }
    LastArrival& last = last_arrival(call.tag);
    // (A rank that lost its processor since it took the time does not hide a later one.)
    if (last.tag.load(std::memory_order_acquire) == call.tag &&
        last.ticks.load(relaxed) > call.begin) {
        return;
    }
    last.ticks.store(call.begin, relaxed);
    last.rank.store(rank_, relaxed);
    // Pairs with the look of end(): who sees the tag sees the time and the rank.
    last.tag.store(call.tag, std::memory_order_release);
}

void Profile::end(std::uint32_t procedure, const Call& call) {
    const std::uint64_t now = fibre::ticks();
    add(RowKind::call, procedure, 0, now - call.begin);
    if (call.collective) {
        add(RowKind::collective, procedure, profile::size_class(call.bytes), now - call.begin,
            call.bytes);
    }
    if (call.tag == 0) {
        return;
    }
    --collectives_;
    const LastArrival& last = last_arrival(call.tag);
    if (!call.waits || last.tag.load(std::memory_order_acquire) != call.tag) {
        return;
    }
    const std::uint32_t its_rank = last.rank.load(relaxed);
    const std::uint64_t came = std::min(last.ticks.load(relaxed), now);
    if (its_rank != rank_ && came > call.begin) {
        add(RowKind::wait, procedure, columns_.of(its_rank), came - call.begin);
    }
}

void Profile::waited(std::uint32_t procedure, std::uint32_t peer, std::uint64_t ticks) {
    if (collectives_ != 0) {
        return; // end() says for whom
    }
    if (peer == profile::nobody) {
        peer = ended_by_ != profile::nobody ? ended_by_ : kept_from_;
    }
    add(RowKind::wait, procedure, peer < ranks_ ? columns_.of(peer) : profile::nobody, ticks);
}

void Profile::sent(std::uint32_t to, std::uint32_t context, std::uint64_t bytes) {
    constexpr std::uint32_t of_library = 1; // bit of a context (mpi/job/context_ids.hpp)
    if ((context & of_library) != 0) {
        record_->of_operations.add(bytes);
    } else if (to < ranks_) { // else to another world
        record_->pairs()[columns_.of(to)].messages.add(bytes);
    }
}

void Profile::accessed(std::uint32_t target, std::uint64_t bytes) {
    if (target < ranks_) {
        record_->pairs()[columns_.of(target)].windows.add(bytes);
    }
}

std::uint32_t Profile::place_of(std::uint64_t key) {
    constexpr std::uint64_t spread = 0x9e3779b97f4a7c15; // 2^64 / golden ratio
    return static_cast<std::uint32_t>((key * spread) >> 40) & (profile::rows_most - 1);
}

Row* Profile::find_row(RowKind kind, std::uint32_t procedure, std::uint32_t detail) {
    const std::uint64_t key = profile::key_of(kind, procedure, detail);
    constexpr std::uint32_t mask = profile::rows_most - 1;
    static_assert((profile::rows_most & mask) == 0);
    auto at = place_of(key);
    for (;; at = (at + 1) & mask) {
        Row& row = record_->rows[at];
        const std::uint64_t its = row.key.load(relaxed);
        if (its == key) {
            return &row;
        }
        if (its == 0) {
            break;
        }
    }
    // The last rows are for what may not be left out; one stays free, so that the search ends.
    const bool spare = kind != RowKind::wait || detail == profile::nobody;
    if (record_->rows_used.read() >= (spare ? mask : profile::rows_before_condensed)) {
        return nullptr;
    }
    record_->rows_used.add(1);
    Row& row = record_->rows[at];
    row.key.store(key, relaxed);
    return &row;
}

void Profile::add(RowKind kind, std::uint32_t procedure, std::uint32_t detail, std::uint64_t ticks,
                  std::uint64_t bytes) {
    Row* row = find_row(kind, procedure, detail);
    if (row == nullptr && kind == RowKind::wait) {
        row = find_row(kind, procedure, profile::nobody);
    }
    if (row == nullptr) {
        record_->left_out.add(1);
        return;
    }
    row->calls.add(1);
    row->ticks.add(ticks);
    row->bytes.add(bytes);
}

} // namespace warren
