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

// Calls of this thread with a pattern that are under way: other threads of the rank may wait for
// messages meanwhile.
constinit thread_local std::uint32_t collectives = 0;
// Ticks that this thread has waited.
constinit thread_local std::uint64_t waited_ticks = 0;

} // namespace

std::uint64_t LastArrival::operation_of(std::uint64_t tag) {
    constexpr std::uint64_t spread = 0x9e3779b97f4a7c15; // 2^64 / golden ratio
    constexpr std::uint64_t most = (std::uint64_t{1} << operation_bits) - 1;
    return 1 + (tag * spread >> 32) % most;
}

void LastArrival::note(std::uint64_t tag, std::uint32_t rank, std::uint64_t ticks) {
    const std::uint64_t own = ticks / unit << other_bits | operation_of(tag) << rank_bits | rank;
    std::uint64_t its = word_.load(relaxed);
    while ((its == 0 || units_between(own, its) > 0) &&
           !word_.compare_exchange_weak(its, own, relaxed)) {
    }
}

bool LastArrival::find(std::uint64_t tag, std::uint64_t near, std::uint32_t& rank,
                       std::uint64_t& ticks) const {
    constexpr std::uint32_t one = 1;
    const std::uint64_t word = word_.load(relaxed);
    rank = static_cast<std::uint32_t>(word & ((one << rank_bits) - 1));
    const std::int64_t units = units_between(word, near / unit << other_bits);
    ticks = near + static_cast<std::uint64_t>(units) * unit;
    return (word >> rank_bits & ((one << operation_bits) - 1)) == operation_of(tag);
}

Profile::Profile(const node::Segment& segment, std::uint32_t rank)
    : rank_(rank), ranks_(segment.ranks()), columns_(ranks_) {
    if (segment.units(profile::records) == 0) {
        return;
    }
    record_ = reinterpret_cast<profile::ProfileRecord*>(segment.unit(profile::records, rank));
    rows_ = record_->rows(columns_);
    places_ = record_->places(columns_);
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

void Profile::begin(std::uint32_t procedure, Call& call) {
    call = {.begin = 0,
            .waited = waited_ticks,
            .row = find_row(RowKind::call, procedure, 0),
            .bytes = 0,
            .tag = 0,
            .collective = false,
            .waits = false};
    if (call.row != nullptr && profile::Sampling(call.row->bytes.read()).times_next()) {
        call.begin = fibre::ticks();
    }
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
    if (call.begin == 0) { // these are all timed
        call.begin = fibre::ticks();
    }
    if (pattern == Pattern::none) {
        return;
    }
    ++collectives;
    call.tag = std::uint64_t{context} << 32 | number;
    call.waits = pattern == Pattern::all || is_root == (pattern == Pattern::to_root);
    if (pattern == Pattern::from_root && !is_root) {
        return;
    }
    last_arrival(call.tag).note(call.tag, rank_, call.begin);
}

void Profile::end(std::uint32_t procedure, const Call& call) {
    const std::uint64_t now = call.begin != 0 ? fibre::ticks() : 0;
    count_call(call, now);
    if (call.collective) {
        add(RowKind::collective, procedure, profile::size_class(call.bytes), now - call.begin,
            call.bytes);
    }
    if (call.tag == 0) {
        return;
    }
    --collectives;
    std::uint32_t its_rank = 0;
    std::uint64_t came = 0;
    if (!call.waits || !last_arrival(call.tag).find(call.tag, call.begin, its_rank, came)) {
        return;
    }
    came = std::min(came, now);
    if (its_rank != rank_ && came > call.begin) {
        add(RowKind::wait, procedure, columns_.of(its_rank), came - call.begin);
    }
}

// The wait of a call that is not timed is known; timed calls tell the rest.
void Profile::count_call(const Call& call, std::uint64_t now) {
    if (call.row == nullptr) {
        record_->left_out.add(1);
        return;
    }
    const std::uint64_t waited = waited_ticks - call.waited;
    Row& row = *call.row;
    row.calls.add(1);
    if (call.collective) {
        row.ticks.add(now - call.begin);
        return;
    }
    profile::Sampling sampling(row.bytes.read());
    if (call.begin == 0) {
        row.ticks.add(waited);
        sampling.skip();
    } else {
        const std::uint64_t own = now - call.begin - std::min(waited, now - call.begin);
        row.ticks.add(waited + own * sampling.weight());
        constexpr std::uint64_t multiplier = 6364136223846793005; // Knuth's, modulo 2^64
        random_ = random_ * multiplier + 1;
        sampling.timed(own, random_ >> 32);
    }
    row.bytes.add(sampling.word() - row.bytes.read());
}

void Profile::waited(std::uint32_t procedure, std::uint32_t peer, std::uint64_t since,
                     std::uint64_t ticks) {
    fetch_recent();
    waited_ticks += ticks;
    if (collectives != 0) {
        return; // end() says for whom
    }
    if (peer == profile::nobody) {
        peer = received_.number > since ? received_.from
               : kept_.number > since   ? kept_.from
                                        : profile::nobody;
    }
    add(RowKind::wait, procedure, peer < ranks_ ? columns_.of(peer) : profile::nobody, ticks);
}

void Profile::sent(std::uint32_t to, std::uint32_t context, std::uint64_t bytes) {
    constexpr std::uint32_t of_library = 1; // bit of a context (mpi/job/context_ids.hpp)
    if ((context & of_library) != 0) {
        record_->of_operations.add(bytes);
    } else if (to < ranks_) { // else to another world
        profile::PairCount& pair = record_->pairs()[columns_.of(to)];
        if (recent_pairs_.pairs[recent_pairs_.newest] != &pair) {
            recent_pairs_.newest = (recent_pairs_.newest + 1) % RecentPairs::most;
            recent_pairs_.pairs[recent_pairs_.newest] = &pair;
        }
        pair.messages.add(bytes);
    }
}

void Profile::accessed(std::uint32_t target, std::uint64_t bytes) {
    if (target < ranks_) {
        record_->pairs()[columns_.of(target)].windows.add(bytes);
    }
}

std::uint32_t Profile::place_of(std::uint64_t key) {
    constexpr std::uint64_t spread = 0x9e3779b97f4a7c15; // 2^64 / golden ratio
    return static_cast<std::uint32_t>((key * spread) >> 40) & (profile::row_places - 1);
}

void Profile::fetch_recent() const {
    for (const Row* row : recent_rows_.rows) {
        __builtin_prefetch(row, 1);
    }
    for (const profile::PairCount* pair : recent_pairs_.pairs) {
        __builtin_prefetch(pair, 1);
    }
}

Row* Profile::find_row(RowKind kind, std::uint32_t procedure, std::uint32_t detail) {
    const std::uint64_t key = profile::key_of(kind, procedure, detail);
    for (std::uint32_t i = 0; i < RecentRows::most; ++i) {
        if (recent_rows_.keys[i] == key) {
            return recent_rows_.rows[i];
        }
    }
    Row* const row = find_older_row(kind, key);
    if (row != nullptr) {
        recent_rows_.keys[recent_rows_.next] = key;
        recent_rows_.rows[recent_rows_.next] = row;
        recent_rows_.next = (recent_rows_.next + 1) % RecentRows::most;
    }
    return row;
}

// Makes the row if there is none yet, and room for it.
Row* Profile::find_older_row(RowKind kind, std::uint64_t key) {
    constexpr std::uint32_t mask = profile::row_places - 1;
    static_assert((profile::row_places & mask) == 0 && profile::row_places > profile::rows_most,
                  "places stay free, so that a search ends");
    auto at = place_of(key);
    for (; places_[at] != 0; at = (at + 1) & mask) {
        Row& row = rows_[places_[at] - 1];
        if (row.key.load(relaxed) == key) {
            return &row;
        }
    }
    // The last rows are for what may not be left out.
    const bool spare = kind != RowKind::wait || profile::detail_of(key) == profile::nobody;
    const std::uint64_t used = record_->rows_used.read();
    if (used >= (spare ? profile::rows_most : profile::rows_before_condensed)) {
        return nullptr;
    }
    Row& row = rows_[used];
    row.key.store(key, relaxed);
    record_->rows_used.add(1);
    places_[at] = static_cast<std::uint16_t>(used + 1);
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
