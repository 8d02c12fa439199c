#include "launch/mpiexec/profile_report.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <iterator>
#include <map>
#include <tuple>

#include "base/futex.hpp"
#include "launch/mpiexec/tuning.hpp"
#include "mpi/calls.hpp"
#include "runtime/fibres/switch.hpp"

namespace warren::launch {

using profile::ProfileRecord;
using profile::RowKind;

namespace {

// How long a rank has run, and how long a tick of its times is.
struct RunTime {
    double seconds;
    double seconds_per_tick;
};

RunTime run_time_of(const ProfileRecord& record) {
    constexpr auto relaxed = std::memory_order_relaxed;
    std::uint64_t end_ticks = fibre::ticks();
    std::uint64_t end_ns = record.end.ns.load(std::memory_order_acquire);
    if (end_ns != 0) {
        end_ticks = record.end.ticks.load(relaxed);
    } else {
        end_ns = monotonic_ns();
    }
    const double seconds = static_cast<double>(end_ns - record.begin.ns.load(relaxed)) * 1e-9;
    const std::uint64_t ticks = end_ticks - record.begin.ticks.load(relaxed);
    return {.seconds = seconds,
            .seconds_per_tick = ticks == 0 ? 0 : seconds / static_cast<double>(ticks)};
}

// Forms of large counts are the same operation.
std::string operation_of(std::uint32_t call) {
    std::string name = mpi::call_name(call);
    if (name.ends_with("_c")) {
        name.resize(name.size() - 2);
    }
    return name;
}

PairMatrix make_matrix(const profile::Columns& columns) {
    PairMatrix made;
    const std::uint32_t columns_each = (columns.count + matrix_most - 1) / matrix_most;
    made.ranks_each = columns.ranks_each * columns_each;
    made.size = (columns.count + columns_each - 1) / columns_each;
    made.values.resize(std::size_t{made.size} * made.size);
    return made;
}

// Sums of rows that are found by what they count.
struct Collected {
    std::map<std::string, CallTotal> calls;
    std::map<std::tuple<std::string, std::uint32_t>, CollectiveTotal> collectives;
};

template <typename Total, typename Key>
void keep_largest(std::vector<Total>& totals, std::size_t most, Key key) {
    std::sort(totals.begin(), totals.end(),
              [&](const Total& one, const Total& other) { return key(one) > key(other); });
    if (totals.size() > most) {
        totals.resize(most);
    }
}

const ProfileRecord& record_of(const node::Segment& segment, std::uint32_t rank) {
    return *reinterpret_cast<const ProfileRecord*>(segment.unit(profile::records, rank));
}

void add_call(RankTimes& times, CallTotal& call, std::uint32_t rank, double time_s) {
    call.time_s += time_s;
    times.mpi_s += time_s;
    if (time_s > call.most_s) {
        call.most_s = time_s;
        call.most_rank = rank;
    }
}

// `column`: of whom it was for, or nobody.
void add_wait(ProfileReport& report, CallTotal& call, std::uint32_t rank, std::uint32_t column,
              std::uint64_t waits, double time_s) {
    call.waiting_s += time_s;
    report.of_ranks[rank].waiting_s += time_s;
    std::uint32_t peer = column;
    if (column != profile::nobody) {
        peer = column * report.ranks_each;
        report.of_ranks[peer].waited_for_s += time_s;
        PairMatrix& waiting = report.waiting;
        waiting.at(rank / waiting.ranks_each, peer / waiting.ranks_each) += time_s;
    }
    report.waits.push_back(
        {.call = call.name, .rank = rank, .peer = peer, .waits = waits, .time_s = time_s});
}

void read_row(ProfileReport& report, Collected& collected, std::uint32_t rank,
              const profile::Row& row, double seconds_per_tick) {
    const std::uint64_t key = row.key.load(std::memory_order_relaxed);
    if (key == 0 || row.calls.read() == 0) { // its first call is being counted
        return;
    }
    const std::string name = operation_of(profile::call_of(key));
    const double time_s = static_cast<double>(row.ticks.read()) * seconds_per_tick;
    const std::uint32_t detail = profile::detail_of(key);
    CallTotal& call = collected.calls[name];
    call.name = name;
    switch (profile::kind_of(key)) {
    case RowKind::call:
        call.calls += row.calls.read();
        add_call(report.of_ranks[rank], call, rank, time_s);
        break;
    case RowKind::wait:
        add_wait(report, call, rank, detail, row.calls.read(), time_s);
        break;
    case RowKind::collective: {
        CollectiveTotal& total = collected.collectives[{name, detail}];
        total.name = name;
        total.size_class = detail;
        total.calls += row.calls.read();
        total.bytes += row.bytes.read();
        total.time_s += time_s;
        break;
    }
    }
}

// The wait that a rank is in, or was in when its job ended: the one that a user looks for whose
// ranks wait for ever.
void read_present_wait(ProfileReport& report, Collected& collected, std::uint32_t rank,
                       const node::Activity& activity) {
    constexpr auto relaxed = std::memory_order_relaxed;
    const std::uint64_t since = activity.since_ns.load(std::memory_order_acquire);
    const std::uint64_t now = monotonic_ns();
    if (since == 0 || since >= now) {
        return;
    }
    const std::string name = operation_of(activity.call.load(relaxed));
    CallTotal& call = collected.calls[name];
    call.name = name;
    const double time_s = static_cast<double>(now - since) * 1e-9;
    const std::int32_t peer = activity.peer.load(relaxed);
    const bool known = peer >= 0 && static_cast<std::uint32_t>(peer) < report.ranks &&
                       activity.peer_in_world.load(relaxed) != 0;
    add_call(report.of_ranks[rank], call, rank, time_s);
    add_wait(report, call, rank,
             known ? static_cast<std::uint32_t>(peer) / report.ranks_each : profile::nobody, 1,
             time_s);
}

void read_pairs(ProfileReport& report, std::uint32_t rank, const ProfileRecord& record,
                const profile::Columns& columns) {
    for (std::uint32_t column = 0; column < columns.count; ++column) {
        const profile::PairCount& count = record.pairs()[column];
        const PairTotal pair = {.from = rank,
                                .to = column * columns.ranks_each,
                                .messages = count.messages.messages.read(),
                                .bytes = count.messages.bytes.read(),
                                .window_operations = count.windows.messages.read(),
                                .window_bytes = count.windows.bytes.read()};
        if (pair.messages == 0 && pair.window_operations == 0) {
            continue;
        }
        ++report.pairs_used;
        report.all_pairs.messages += pair.messages;
        report.all_pairs.bytes += pair.bytes;
        report.all_pairs.window_operations += pair.window_operations;
        report.all_pairs.window_bytes += pair.window_bytes;
        PairMatrix& bytes = report.bytes;
        bytes.at(rank / bytes.ranks_each, pair.to / bytes.ranks_each) +=
            static_cast<double>(pair.bytes + pair.window_bytes);
        report.pairs.push_back(pair);
    }
}

[[gnu::format(printf, 1, 2)]] std::string line_of(const char* form, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, form);
    std::vsnprintf(text, sizeof text, form, arguments);
    va_end(arguments);
    return text;
}

std::string name_of_peer(std::uint32_t peer) {
    return peer == profile::nobody ? "others" : std::to_string(peer);
}

std::string table_of_waits(const ProfileReport& report) {
    if (report.waits.empty()) {
        return "no rank waited for another\n";
    }
    std::string text = "waits: who for whom\n    rank     for         waits           s  in\n";
    std::size_t lines = 0;
    for (const WaitTotal& wait : report.waits) {
        if (lines++ == table_lines) {
            break;
        }
        text +=
            line_of("  %6u  %6s  %12llu  %10.4f  %s\n", wait.rank, name_of_peer(wait.peer).c_str(),
                    static_cast<unsigned long long>(wait.waits), wait.time_s, wait.call.c_str());
    }
    return text;
}

std::string table_of_collectives(const ProfileReport& report) {
    if (report.collectives.empty()) {
        return {};
    }
    std::string text =
        "collective operations by size: bytes at a rank on average, calls of all ranks\n"
        "  operation                        bytes         calls           s"
        "     us each\n";
    for (const CollectiveTotal& one : report.collectives) {
        text += line_of("  %-24s  %12llu  %12llu  %10.4f  %10.1f\n", one.name.c_str(),
                        static_cast<unsigned long long>(one.bytes / one.calls),
                        static_cast<unsigned long long>(one.calls), one.time_s,
                        1e6 * one.time_s / static_cast<double>(one.calls));
    }
    return text;
}

std::string table_of_pairs(const ProfileReport& report) {
    const PairTotal& all = report.all_pairs;
    std::string text = line_of(
        "messages: %llu, %llu bytes; puts, gets, accumulates: %llu, %llu bytes\n",
        static_cast<unsigned long long>(all.messages), static_cast<unsigned long long>(all.bytes),
        static_cast<unsigned long long>(all.window_operations),
        static_cast<unsigned long long>(all.window_bytes));
    if (report.pairs.empty()) {
        return text;
    }
    text += "    from      to      messages           bytes      windows    bytes there\n";
    std::size_t lines = 0;
    for (const PairTotal& pair : report.pairs) {
        if (lines++ == table_lines) {
            text += line_of("  and %llu pairs more\n",
                            static_cast<unsigned long long>(report.pairs_used - table_lines));
            break;
        }
        text += line_of("  %6u  %6u  %12llu  %14llu  %11llu  %13llu\n", pair.from, pair.to,
                        static_cast<unsigned long long>(pair.messages),
                        static_cast<unsigned long long>(pair.bytes),
                        static_cast<unsigned long long>(pair.window_operations),
                        static_cast<unsigned long long>(pair.window_bytes));
    }
    return text;
}

} // namespace

double PairMatrix::most() const {
    return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

ProfileReport read_profile(const node::Segment& segment) {
    ProfileReport report;
    const profile::Columns columns(segment.ranks());
    report.ranks = segment.ranks();
    report.ranks_each = columns.ranks_each;
    report.of_ranks.resize(report.ranks);
    report.bytes = make_matrix(columns);
    report.waiting = make_matrix(columns);
    Collected collected;
    for (std::uint32_t rank = 0; rank < report.ranks; ++rank) {
        const ProfileRecord& record = record_of(segment, rank);
        if (record.begin.ns.load(std::memory_order_relaxed) == 0) {
            ++report.without_mpi;
            continue;
        }
        report.unfinished += record.end.ns.load(std::memory_order_relaxed) == 0 ? 1 : 0;
        const RunTime run = run_time_of(record);
        report.of_ranks[rank].run_s = run.seconds;
        report.left_out += record.left_out.read();
        report.operation_messages += record.of_operations.messages.read();
        for (const profile::Row& row : record.used_rows(columns)) {
            read_row(report, collected, rank, row, run.seconds_per_tick);
        }
        read_present_wait(report, collected, rank, segment.slot(rank).activity);
        read_pairs(report, rank, record, columns);
    }
    for (const RankTimes& times : report.of_ranks) {
        report.sum.run_s += times.run_s;
        report.sum.mpi_s += times.mpi_s;
        report.sum.waiting_s += times.waiting_s;
    }
    for (auto& [name, call] : collected.calls) {
        report.calls.push_back(call);
    }
    for (auto& [key, collective] : collected.collectives) {
        report.collectives.push_back(collective);
    }
    keep_largest(report.calls, report.calls.size(),
                 [](const CallTotal& call) { return call.time_s; });
    keep_largest(report.waits, waits_kept, [](const WaitTotal& wait) { return wait.time_s; });
    keep_largest(report.pairs, pairs_kept,
                 [](const PairTotal& pair) { return pair.bytes + pair.window_bytes; });
    return report;
}

std::string describe_size(std::uint32_t size_class) {
    if (size_class <= 1) {
        return std::to_string(size_class);
    }
    const std::uint64_t first = std::uint64_t{1} << (size_class - 1);
    return std::to_string(first) + "-" + std::to_string(2 * (first - 1) + 1);
}

std::string describe_bytes(double bytes) {
    const char* const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    std::size_t unit = 0;
    for (; bytes >= 1000 && unit + 1 < std::size(units); bytes /= 1000) {
        ++unit;
    }
    return line_of(unit == 0 ? "%.0f %s" : "%.3g %s", bytes, units[unit]);
}

std::string profile_table(const ProfileReport& report) {
    const std::uint32_t began = report.ranks - report.without_mpi;
    if (began == 0) {
        return "profile: no rank has called MPI_Init\n";
    }
    const double run_s = report.sum.run_s > 0 ? report.sum.run_s : 1;
    std::string text = line_of(
        "profile of %u ranks: %.3f s each on average, %.1f %% of it in MPI, %.1f %% waiting "
        "for others\n",
        began, report.sum.run_s / began, 100 * report.sum.mpi_s / run_s,
        100 * report.sum.waiting_s / run_s);
    if (report.unfinished != 0) {
        text += line_of("%u of them have not left MPI\n", report.unfinished);
    }
    if (report.ranks_each > 1) {
        text += line_of("peers are %u ranks each, named by the first\n", report.ranks_each);
    }
    text +=
        "  call                             calls           s    % of run   waiting s     most s"
        "  of rank\n";
    for (const CallTotal& call : report.calls) {
        text += line_of("  %-24s  %12llu  %10.4f  %9.2f  %10.4f  %9.4f  %7u\n", call.name.c_str(),
                        static_cast<unsigned long long>(call.calls), call.time_s,
                        100 * call.time_s / run_s, call.waiting_s, call.most_s, call.most_rank);
    }
    text += table_of_waits(report) + table_of_collectives(report) + table_of_pairs(report);
    if (report.left_out != 0) {
        text += line_of("%llu calls and waits had no room in the records\n",
                        static_cast<unsigned long long>(report.left_out));
    }
    return text;
}

} // namespace warren::launch
