#include "launch/mpiexec/profile_page.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/tuning.hpp"

namespace warren::launch {

namespace {

// The page's own style, behind that of the analyser's reports.
constexpr const char* page_style = R"css(
header { padding-bottom: 8px; }
.cells { width: min(560px, 100%); height: auto; border: 1px solid var(--line); display: block; }
.cells rect { fill: var(--accent); shape-rendering: crispEdges; }
.cells text { fill: var(--quiet); font-size: 10px; }
.cells .ground { fill: var(--raised); }
.ramp { display: inline-block; width: 120px; height: 11px; border-radius: 2px; vertical-align: -1px;
        margin: 0 6px; background: linear-gradient(90deg, color-mix(in srgb, var(--accent) 12%, transparent), var(--accent)); }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(480px, 100%), 1fr)); gap: 12px 28px; }
.two > div { min-width: 0; }
td.text { overflow-wrap: normal; }
.ranks { display: grid; grid-template-columns: max-content 1fr max-content; gap: 3px 10px; font-size: 13px; align-items: center; }
.ranks div { display: flex; height: 12px; background: var(--line); border-radius: 3px; overflow: hidden; }
.run { background: var(--good); } .work { background: var(--accent); } .wait { background: var(--bad); }
)css";

[[gnu::format(printf, 1, 2)]] std::string html_of(const char* form, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, form);
    std::vsnprintf(text, sizeof text, form, arguments);
    va_end(arguments);
    return text;
}

std::string escaped(const std::string& text) {
    std::string made;
    for (const char c : text) {
        switch (c) {
        case '<':
            made += "&lt;";
            break;
        case '>':
            made += "&gt;";
            break;
        case '&':
            made += "&amp;";
            break;
        case '"':
            made += "&quot;";
            break;
        default:
            made += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
        }
    }
    return made;
}

std::string describe_time(double seconds) {
    return seconds >= 1      ? html_of("%.2f s", seconds)
           : seconds >= 1e-3 ? html_of("%.3g ms", seconds * 1e3)
                             : html_of("%.3g µs", seconds * 1e6);
}

std::string describe_peers(std::uint32_t first, std::uint32_t each, std::uint32_t ranks) {
    const std::uint32_t last = std::min(first + each, ranks) - 1;
    return last == first ? std::to_string(first)
                         : std::to_string(first) + "–" + std::to_string(last);
}

// --- Parts of the page

std::string cards(const ProfileReport& report) {
    const double run_s = std::max(report.sum.run_s, 1e-9);
    const std::uint32_t began = std::max(report.ranks - report.without_mpi, 1U);
    const auto card = [](const std::string& value, const std::string& label) {
        return "<div class=card><b>" + value + "</b><span>" + label + "</span></div>\n";
    };
    std::string text =
        "<div id=cards>\n" + card(html_of("%u", report.ranks), "ranks") +
        card(describe_time(run_s / began), "from MPI_Init to MPI_Finalize, on average") +
        card(html_of("%.1f %%", 100 * report.sum.mpi_s / run_s), "of it in MPI") +
        card(html_of("%.1f %%", 100 * report.sum.waiting_s / run_s), "waiting for other ranks") +
        card(describe_bytes(static_cast<double>(report.all_pairs.bytes)),
             html_of("in %llu messages",
                     static_cast<unsigned long long>(report.all_pairs.messages)));
    if (report.all_pairs.window_operations != 0) {
        text += card(describe_bytes(static_cast<double>(report.all_pairs.window_bytes)),
                     html_of("in %llu puts, gets, accumulates",
                             static_cast<unsigned long long>(report.all_pairs.window_operations)));
    }
    text += "</div>\n";
    if (report.unfinished != 0 || report.without_mpi != 0 || report.left_out != 0) {
        text += "<ul id=warnings>";
        if (report.unfinished != 0) {
            text += html_of("<li>%u ranks have not left MPI: their figures end with the job",
                            report.unfinished);
        }
        if (report.without_mpi != 0) {
            text += html_of("<li>%u ranks have not called MPI_Init", report.without_mpi);
        }
        if (report.left_out != 0) {
            text += html_of("<li>%llu calls and waits had no room in the records",
                            static_cast<unsigned long long>(report.left_out));
        }
        text += "</ul>\n";
    }
    return text;
}

// Cells are the stronger the more there is, on a logarithmic scale over four decades.
std::string matrix(const PairMatrix& shown, std::uint32_t ranks, const char* between,
                   std::string (*describe)(double)) {
    const double most = shown.most();
    if (most <= 0) {
        return "<p class=quiet>Nothing.</p>\n";
    }
    constexpr double decades = 4;
    constexpr double weakest = 0.12;
    const double room = 30; // for labels
    const double cell = 512.0 / shown.size;
    std::string text = html_of("<svg class=cells role=img viewBox=\"0 0 %.0f %.0f\">\n"
                               "<rect class=ground x=%.0f y=%.0f width=512 height=512 />\n",
                               512 + room, 512 + room, room, room);
    const std::uint32_t step = (shown.size + 15) / 16;
    for (std::uint32_t label = 0; label < shown.size; label += step) {
        const double at = room + (label + 0.5) * cell;
        text += html_of("<text x=%.1f y=%.0f text-anchor=middle>%u</text>"
                        "<text x=%.0f y=%.1f text-anchor=end>%u</text>\n",
                        at, room - 6, label * shown.ranks_each, room - 4, at + 3,
                        label * shown.ranks_each);
    }
    for (std::uint32_t row = 0; row < shown.size; ++row) {
        for (std::uint32_t column = 0; column < shown.size; ++column) {
            const double value = shown.at(row, column);
            if (value <= 0) {
                continue;
            }
            const double share = std::max(0.0, 1 + std::log10(value / most) / decades);
            text += html_of(
                "<rect x=%.2f y=%.2f width=%.2f height=%.2f fill-opacity=%.2f>"
                "<title>%s %s %s: %s</title></rect>\n",
                room + column * cell, room + row * cell, cell, cell,
                weakest + (1 - weakest) * share,
                describe_peers(row * shown.ranks_each, shown.ranks_each, ranks).c_str(), between,
                describe_peers(column * shown.ranks_each, shown.ranks_each, ranks).c_str(),
                describe(value).c_str());
        }
    }
    text += "</svg>\n<p class=quiet>" + describe(most / std::pow(10, decades)) +
            " or less<span class=ramp></span>" + describe(most) + "</p>\n";
    if (shown.ranks_each > 1) {
        text += html_of("<p class=quiet>A cell stands for %u ranks in each direction.</p>\n",
                        shown.ranks_each);
    }
    return text;
}

std::string bar(double share) {
    return html_of("<span class=bar><i class=work style=\"width:%.1f%%\"></i></span>",
                   100 * std::min(share, 1.0));
}

std::string waits(const ProfileReport& report) {
    std::string text = "<section id=waits><h2>Who waited for whom</h2>\n"
                       "<p class=quiet>A wait belongs to the rank whose message ended it; in a "
                       "collective operation, to the rank that came last.</p>\n<div class=two><div>"
                       "<h3>A row for each rank that waited, a column for each that it waited for"
                       "</h3>\n" +
                       matrix(report.waiting, report.ranks, "waited for", describe_time) +
                       "</div><div><h3>The longest</h3><div class=scroll><table><thead><tr>"
                       "<th>rank<th>for<th class=text>in<th>waits<th>time</tr></thead><tbody>\n";
    for (const WaitTotal& wait : report.waits) {
        const std::string peer = wait.peer == profile::nobody
                                     ? "others"
                                     : describe_peers(wait.peer, report.ranks_each, report.ranks);
        text +=
            html_of("<tr><td>%u<td>%s<td class=text>%s<td>%llu<td>%s</tr>\n", wait.rank,
                    peer.c_str(), wait.call.c_str(), static_cast<unsigned long long>(wait.waits),
                    describe_time(wait.time_s).c_str());
    }
    return text + "</tbody></table></div></div></div></section>\n";
}

std::string messages(const ProfileReport& report) {
    const auto as_bytes = [](double value) { return describe_bytes(value); };
    std::string text = "<section id=messages><h2>Bytes between ranks</h2>\n"
                       "<p class=quiet>Messages of the program, and puts, gets and accumulates. "
                       "Collective operations are below.</p>\n<div class=two><div>"
                       "<h3>A row for each sender, a column for each receiver</h3>\n" +
                       matrix(report.bytes, report.ranks, "to", as_bytes) +
                       "</div><div><h3>The most</h3><div class=scroll><table><thead><tr><th>from"
                       "<th>to<th>messages<th>bytes<th>puts, gets<th>bytes</tr></thead><tbody>\n";
    for (const PairTotal& pair : report.pairs) {
        text += html_of("<tr><td>%u<td>%s<td>%llu<td>%s<td>%llu<td>%s</tr>\n", pair.from,
                        describe_peers(pair.to, report.ranks_each, report.ranks).c_str(),
                        static_cast<unsigned long long>(pair.messages),
                        describe_bytes(static_cast<double>(pair.bytes)).c_str(),
                        static_cast<unsigned long long>(pair.window_operations),
                        describe_bytes(static_cast<double>(pair.window_bytes)).c_str());
    }
    return text + "</tbody></table></div></div></div></section>\n";
}

std::string collectives(const ProfileReport& report) {
    std::string text =
        "<section id=collectives><h2>Collective operations by size</h2>\n"
        "<p class=quiet>Bytes that a rank brings, or gets where only the root brings some. Calls "
        "and time of all ranks; a nonblocking operation's time is that of its begin.</p>\n";
    if (report.collectives.empty()) {
        return text + "<p class=quiet>None.</p></section>\n";
    }
    double most_s = 0;
    for (const CollectiveTotal& one : report.collectives) {
        most_s = std::max(most_s, one.time_s);
    }
    text += "<div class=scroll><table><thead><tr><th class=text>operation<th>bytes<th>on average"
            "<th>calls<th>time<th><th>each</tr></thead><tbody>\n";
    for (const CollectiveTotal& one : report.collectives) {
        const auto calls = static_cast<double>(one.calls);
        text +=
            html_of("<tr><td class=text>%s<td>%s<td>%s<td>%llu<td>%s<td>%s<td>%s</tr>\n",
                    one.name.c_str(), describe_size(one.size_class).c_str(),
                    describe_bytes(static_cast<double>(one.bytes) / calls).c_str(),
                    static_cast<unsigned long long>(one.calls), describe_time(one.time_s).c_str(),
                    bar(most_s > 0 ? one.time_s / most_s : 0).c_str(),
                    describe_time(one.time_s / calls).c_str());
    }
    return text + "</tbody></table></div></section>\n";
}

std::string calls(const ProfileReport& report) {
    std::string text = "<section id=calls><h2>Calls</h2>\n<div class=scroll><table><thead><tr>"
                       "<th class=text>procedure<th>calls<th>time<th>of the run<th><th>waiting"
                       "<th>most<th>of rank</tr></thead><tbody>\n";
    const double run_s = std::max(report.sum.run_s, 1e-9);
    for (const CallTotal& call : report.calls) {
        text += html_of("<tr><td class=text>%s<td>%llu<td>%s<td>%.2f %%<td>%s<td>%s<td>%s<td>%u"
                        "</tr>\n",
                        call.name.c_str(), static_cast<unsigned long long>(call.calls),
                        describe_time(call.time_s).c_str(), 100 * call.time_s / run_s,
                        bar(call.time_s / run_s).c_str(), describe_time(call.waiting_s).c_str(),
                        describe_time(call.most_s).c_str(), call.most_rank);
    }
    return text + "</tbody></table></div></section>\n";
}

std::string ranks(const ProfileReport& report) {
    const std::uint32_t each = (report.ranks + bars_most - 1) / bars_most;
    std::string text =
        "<section id=ranks><h2>Ranks</h2>\n<div class=legend><span><i class=run></i>outside MPI"
        "</span><span><i class=work></i>in MPI</span><span><i class=wait></i>waiting for others"
        "</span><span>at the end: how long others waited for it</span></div>\n<div class=ranks>\n";
    for (std::uint32_t first = 0; first < report.ranks; first += each) {
        RankTimes sum;
        for (std::uint32_t rank = first; rank < std::min(first + each, report.ranks); ++rank) {
            const RankTimes& its = report.of_ranks[rank];
            sum.run_s += its.run_s;
            sum.mpi_s += its.mpi_s;
            sum.waiting_s += its.waiting_s;
            sum.waited_for_s += its.waited_for_s;
        }
        const double run_s = std::max(sum.run_s, 1e-9);
        const double waiting = std::min(sum.waiting_s / run_s, 1.0);
        const double working = std::clamp(sum.mpi_s / run_s - waiting, 0.0, 1.0 - waiting);
        text += html_of("<span>%s</span><div title=\"%.1f %% in MPI, %.1f %% waiting\">"
                        "<i class=run style=\"width:%.2f%%\"></i>"
                        "<i class=work style=\"width:%.2f%%\"></i>"
                        "<i class=wait style=\"width:%.2f%%\"></i></div><span>%s</span>\n",
                        describe_peers(first, each, report.ranks).c_str(), 100 * sum.mpi_s / run_s,
                        100 * waiting, 100 * (1 - working - waiting), 100 * working, 100 * waiting,
                        describe_time(sum.waited_for_s).c_str());
    }
    return text + "</div></section>\n";
}

} // namespace

std::string profile_html(const ProfileReport& report, const std::string& command) {
    return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
           "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Profile</title>\n"
           "<link rel=\"icon\" href=\"data:,\">\n<style>" +
           std::string(report_style) + page_style +
           "</style>\n</head>\n<body>\n<header><h1>Profile <span>" + escaped(command) +
           "</span></h1>\n<nav><a href=\"#waits\">Who waited for whom</a>"
           "<a href=\"#messages\">Bytes between ranks</a><a href=\"#collectives\">Collective "
           "operations</a><a href=\"#calls\">Calls</a><a href=\"#ranks\">Ranks</a></nav></header>\n"
           "<main>\n<section id=overview><h2>Overview</h2>\n" +
           cards(report) + "</section>\n" + waits(report) + messages(report) + collectives(report) +
           calls(report) + ranks(report) + "</main>\n</body>\n</html>\n";
}

ProfilePage::~ProfilePage() {
    if (descriptor_ < 0) {
        return;
    }
    close(descriptor_);
    if (made_ && !written_) {
        unlink(path_.c_str());
    }
}

Error ProfilePage::open(const std::string& path) {
    path_ = path;
    constexpr int mode = 0666; // less the user's mask
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    made_ = descriptor_ >= 0;
    if (!made_ && errno == EEXIST) {
        descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    }
    return descriptor_ >= 0 ? Error()
                            : fail(exit_failure, "--profile=%s can't be written: %s", path.c_str(),
                                   std::strerror(errno));
}

Error ProfilePage::write(const std::string& text) {
    bool good = ftruncate(descriptor_, 0) == 0 || errno == EINVAL; // a pipe or a device
    for (std::size_t done = 0; good && done < text.size();) {
        const ssize_t wrote = ::write(descriptor_, text.data() + done, text.size() - done);
        good = wrote > 0 || (wrote < 0 && errno == EINTR);
        done += wrote > 0 ? static_cast<std::size_t>(wrote) : 0;
    }
    if (good) {
        written_ = true;
        return {};
    }
    const int reason = errno;
    [[maybe_unused]] const int emptied = ftruncate(descriptor_, 0);
    return fail(exit_failure, "--profile=%s could not be written: %s", path_.c_str(),
                std::strerror(reason));
}

} // namespace warren::launch
