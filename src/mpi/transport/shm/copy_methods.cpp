#include "mpi/transport/shm/copy_methods.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "mpi/transport/shm/tuning.hpp"

namespace warren::transport {

namespace {

// Sum of a row's lower three quarters: the longest have met a disturbance. Periods count the time
// between exchanges, if each has several messages: in twelve or six of them so many are left out
// that it makes no difference at which one the row began.
float typical(std::span<float> row) {
    const auto undisturbed = static_cast<std::ptrdiff_t>(row.size() * 3 / 4);
    std::nth_element(row.begin(), row.begin() + undisturbed, row.end());
    return std::accumulate(row.begin(), row.begin() + undisturbed, 0.0F);
}

// Cost per byte, ns, of a message that couldn't be fetched: more than any method takes.
constexpr float endless = 1e9F;

constexpr std::array<CopyMethod, copy_method_count> all_methods = {
    CopyMethod::push, CopyMethod::pass, CopyMethod::fetch};

} // namespace

CopyMethods::CopyMethods() {
    for (std::uint32_t i = 0; i < CopyMethodClass::count; ++i) {
        classes_[i] = {.left = CopyMethodClass::rhythm(i).first_rest,
                       .own = CopyMethodClass::first_method(i)};
    }
}

// The sender repeats: a rest, a row by the advised method, a row by each other open method.
void CopyMethods::turn(std::uint32_t size_class, Advice advice) {
    Class& now = classes_[size_class];
    const Rhythm& rhythm = CopyMethodClass::rhythm(size_class);
    const bool may_fetch = (advice & no_fetching) == 0;
    if (!now.measures) {
        const CopyMethod advised = CopyMethodClass::advised(size_class, advice);
        now.pace = static_cast<std::uint8_t>(
            advised != now.own ? 0 : std::min<int>(now.pace + 1, rhythm.slowest_pace));
        now.own = now.method = advised;
        now.left = rhythm.row();
        now.measures = true;
        return;
    }
    // The next open method, in a circle.
    do {
        now.method = all_methods[(static_cast<std::size_t>(now.method) + 1) % copy_method_count];
    } while (now.method != now.own && !is_open(now.method, may_fetch));
    now.measures = now.method != now.own;
    now.left =
        now.measures ? rhythm.row() : static_cast<std::uint16_t>(rhythm.shortest_rest << now.pace);
}

void CopyMethods::look_for_wish(std::uint32_t size_class, Advice advice) {
    Class& now = classes_[size_class];
    const bool again = (advice & CopyMethodClass::again(size_class)) != 0;
    if (now.again != again) [[unlikely]] {
        now.again = again;
        if (!now.measures) {
            now.pace = 0;
            now.left = 1;
        }
    }
}

CopyMethodJudge::CopyMethodJudge() {
    for (std::uint32_t i = 0; i < CopyMethodClass::count; ++i) {
        classes_[i].best = CopyMethodClass::first_method(i);
    }
}

std::uint64_t CopyMethodJudge::cost(std::uint32_t size_class, const Trial& trial) const {
    // Each of messages that come one behind the other has the time since the one before.
    const std::uint64_t since = std::max(trial.began, last_end_);
    if (!trial.unexpected && trial.looked <= since + late_ns) {
        return trial.ended > since ? trial.ended - since : 0;
    }
    // The receiver looked late, which is no property of the method: only copies count. A fetch is
    // one copy. For a block that was pushed, the receiver has seen only the second of two copies,
    // and one more follows if it was unexpected. The rest of a long message is pushed while the
    // receiver looks.
    const std::uint64_t copy = trial.ended - std::max(trial.looked, last_end_);
    return trial.method == CopyMethod::fetch || size_class >= CopyMethodClass::first_long
               ? copy
               : copy * (trial.unexpected ? 3 : 2);
}

void CopyMethodJudge::drop_stale(Class& now, const Trial& trial) {
    const auto index = static_cast<std::size_t>(trial.method);
    // A method has one row per round. A message of a full row therefore belongs to the next round,
    // unless it began before the row was full.
    const bool is_next_round = now.full[index] && trial.began > now.full_since[index];
    const bool is_late = now.last_end != 0 && trial.began > now.last_end + stale_ns;
    now.last_end = trial.ended;
    if (is_next_round || is_late) {
        now.full = {};
        now.seen = 0;
    }
}

bool CopyMethodJudge::add(std::uint32_t size_class, const Trial& trial, std::uint64_t bytes,
                          bool may_fetch, CopyMethod& best, bool by_period) {
    const auto per_byte = [&](std::uint64_t ns) {
        return static_cast<float>(ns) / static_cast<float>(bytes);
    };
    const float taken = trial.failed ? endless : per_byte(cost(size_class, trial));
    last_end_ = trial.ended;
    Class& now = classes_[size_class];
    const Rhythm& rhythm = CopyMethodClass::rhythm(size_class);
    const std::uint64_t before = now.last_end;
    drop_stale(now, trial);
    if (now.method != trial.method) {
        now.method = trial.method;
        now.seen = 0;
    }
    const auto index = static_cast<std::size_t>(trial.method);
    if (!now.full[index]) {
        if (now.seen++ < rhythm.unmeasured) {
            return false;
        }
        const std::uint32_t place = now.seen - rhythm.unmeasured - 1;
        now.rows[index][place] = taken;
        now.periods[index][place] = trial.failed ? endless : per_byte(trial.ended - before);
        now.full[index] = place + 1 == rhythm.measured;
        now.full_since[index] = trial.ended;
    }
    // Also when this row was full before: fetching may have been refused since.
    if (!judge(now, rhythm, may_fetch, by_period)) {
        return false;
    }
    best = now.best;
    return true;
}

bool CopyMethodJudge::judge(Class& now, const Rhythm& rhythm, bool may_fetch, bool by_period) {
    for (const CopyMethod method : all_methods) {
        if (is_open(method, may_fetch) && !now.full[static_cast<std::size_t>(method)]) {
            return false;
        }
    }
    const auto measured = [&](std::array<Row, copy_method_count>& rows, CopyMethod method) {
        return std::span(rows[static_cast<std::size_t>(method)]).first(rhythm.measured);
    };
    const auto time = [&](CopyMethod method) { return typical(measured(now.rows, method)); };
    const auto period = [&](CopyMethod method) { return typical(measured(now.periods, method)); };
    float longest = std::numeric_limits<float>::infinity(); // of periods that make no difference
    for (const CopyMethod method : all_methods) {
        if (by_period && is_open(method, may_fetch)) {
            longest = std::min(longest, period(method) / worthwhile);
        }
    }
    const auto is_candidate = [&](CopyMethod method) {
        return is_open(method, may_fetch) && (!by_period || period(method) <= longest);
    };
    if (!is_open(now.best, may_fetch)) {
        now.best = CopyMethod::push;
    }
    const CopyMethod before = now.best;
    float least =
        is_candidate(before) ? time(before) * worthwhile : std::numeric_limits<float>::infinity();
    for (const CopyMethod method : all_methods) {
        if (method == before || !is_candidate(method)) {
            continue;
        }
        if (const float taken = time(method); taken < least) {
            now.best = method;
            least = taken;
        }
    }
    if (now.best != before) {
        now.in_vain = 0;
    } else if (now.wished && now.in_vain < most_in_vain) {
        ++now.in_vain;
    }
    now.wished = false;
    now.full = {};
    now.seen = 0;
    now.usual_seen = now.slow = 0;
    return true;
}

bool CopyMethodJudge::drifts(std::uint32_t size_class, const Trial& trial, std::uint64_t bytes,
                             Advice& again) {
    // The time until the receiver looked is no property of the method.
    const auto copy_ns = static_cast<float>(trial.ended - std::max(trial.looked, last_end_));
    const float taken = trial.failed ? endless : copy_ns / static_cast<float>(bytes);
    last_end_ = trial.ended;
    Class& now = classes_[size_class];
    if (trial.method != now.best) {
        return false;
    }
    if (now.usual_seen < enough_to_tell) {
        now.usual = now.usual_seen == 0 ? taken : std::min(now.usual, taken);
        ++now.usual_seen;
        return false;
    }
    now.slow = taken > now.usual * much_slower ? now.slow + 1 : 0;
    if (now.slow < enough_to_tell << now.in_vain) {
        return false;
    }
    // All rows are to be new ones.
    now.full = {};
    now.seen = 0;
    now.usual_seen = now.slow = 0;
    now.wished = true;
    now.again = !now.again;
    again = now.again ? CopyMethodClass::again(size_class) : 0;
    return true;
}

CopyMethod OwnCopyMethods::next(std::uint64_t bytes, Trial& trial, bool beside) {
    const std::uint32_t size_class = CopyMethodClass::of(bytes);
    const CopyMethod method = methods_.next(size_class, advice_);
    const std::uint64_t stamp = methods_.stamp(size_class, method);
    trial = {.began = Stamp::time(stamp),
             .looked = Stamp::time(stamp),
             .ended = 0,
             .unexpected = false,
             .resting = Stamp::resting(stamp),
             .method = method,
             .ignored = beside && method == CopyMethod::fetch};
    if (!trial.ignored) {
        methods_.sent(size_class, advice_);
    }
    return method;
}

void OwnCopyMethods::end(std::uint64_t bytes, const Trial& trial) {
    if (trial.ignored || trial.began == 0) {
        return;
    }
    const std::uint32_t size_class = CopyMethodClass::of(bytes);
    if (trial.resting) {
        Advice again;
        if (judge_.drifts(size_class, trial, bytes, again)) {
            advice_ = (advice_ & ~CopyMethodClass::again(size_class)) | again;
        }
        return;
    }
    CopyMethod best;
    if (judge_.add(size_class, trial, bytes, (advice_ & no_fetching) == 0, best, trial.mutual)) {
        advice_ = (advice_ & ~CopyMethodClass::mask(size_class)) |
                  CopyMethodClass::advice(size_class, best);
    }
}

CopyMethod Asking::next(std::uint64_t bytes, Trial& trial, bool may_fetch, bool mutual) {
    if (!may_fetch) {
        methods_.refuse_fetching();
    }
    const CopyMethod method = methods_.next(bytes, trial, under_way_ > 0);
    trial.asked = true;
    trial.mutual = mutual;
    under_way_ += method == CopyMethod::fetch ? 0 : 1;
    return method;
}

void Asking::end(std::uint64_t bytes, const Trial& trial) {
    under_way_ -= trial.method == CopyMethod::fetch ? 0 : 1;
    methods_.end(bytes, trial);
}

} // namespace warren::transport
