#include "launch/mpiexec/option_values.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/mpiexec/errors.hpp"

namespace warren::launch {

namespace {

struct BindToName {
    std::string_view name;
    BindTo bind_to;
};

constexpr std::array bind_to_names{
    BindToName{"auto", BindTo::automatic},    BindToName{"none", BindTo::none},
    BindToName{"hwthread", BindTo::hwthread}, BindToName{"core", BindTo::core},
    BindToName{"l3cache", BindTo::l3cache},   BindToName{"numa", BindTo::numa},
    BindToName{"socket", BindTo::socket},     BindToName{"package", BindTo::socket},
};

} // namespace

bool whole_number(const std::string& text, std::uint32_t limit, std::uint32_t& number) {
    if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) {
        return false;
    }
    const unsigned long long value = std::strtoull(text.c_str(), nullptr, 10);
    number = static_cast<std::uint32_t>(value);
    return value >= 1 && value <= limit;
}

Error parse_timeout(const std::string& what, const std::string& value, double& seconds) {
    char* end = nullptr;
    seconds = std::strtod(value.c_str(), &end);
    // A year: keeps the arithmetic in range; catches nan too.
    if (value.empty() || *end != '\0' || !(seconds > 0 && seconds < 3.2e7)) {
        return fail(exit_usage, "%s needs a time in seconds above 0, not '%s'", what.c_str(),
                    value.c_str());
    }
    return {};
}

Error parse_size(const std::string& what, const std::string& value, std::uint64_t& bytes) {
    constexpr std::string_view units = "kMG";
    constexpr std::uint64_t least = 64 << 10; // the C library and a signal's frame need as much
    constexpr std::uint64_t most = std::uint64_t{1} << 40;
    char* end = nullptr;
    errno = 0;
    bytes = std::strtoull(value.c_str(), &end, 10);
    bool sound = errno == 0 && end != value.c_str() && value[0] != '-' && bytes <= most;
    if (const std::size_t unit = units.find(*end); sound && *end != '\0') {
        sound =
            unit != std::string_view::npos && end[1] == '\0' && bytes <= most >> 10 * (unit + 1);
        bytes <<= sound ? 10 * (unit + 1) : 0;
    }
    if (!sound || bytes < least || bytes > most) {
        return fail(exit_usage, "%s needs a size from 64k to 1024G, not '%s'", what.c_str(),
                    value.c_str());
    }
    return {};
}

Error parse_rank_kind(const std::string& what, const std::string& value, RankKind& kind) {
    if (value != "processes" && value != "threads" && value != "fibres") {
        return fail(exit_usage, "%s needs processes, threads or fibres, not '%s'", what.c_str(),
                    value.c_str());
    }
    kind = value == "threads"  ? RankKind::thread
           : value == "fibres" ? RankKind::fibre
                               : RankKind::process;
    return {};
}

Error parse_bind_to(const std::string& what, const std::string& value, BindTo& bind_to) {
    const auto* found = std::find_if(bind_to_names.begin(), bind_to_names.end(),
                                     [&](const BindToName& name) { return name.name == value; });
    if (found == bind_to_names.end()) {
        return fail(exit_usage,
                    "%s needs auto, core, hwthread, l3cache, numa, socket or none, not '%s'",
                    what.c_str(), value.c_str());
    }
    bind_to = found->bind_to;
    return {};
}

Error parse_hwloc_sharing(const std::string& what, const std::string& value,
                          HwlocSharing& sharing) {
    constexpr std::uint32_t copies_limit = 64;
    std::string chosen[3]; // the words for the way, the place and the copies
    for (std::size_t at = 0; at <= value.size();) {
        const std::size_t end = std::min(value.find(',', at), value.size());
        const std::string word = value.substr(at, end - at);
        at = end + 1;
        const auto way = std::find(hwloc_way_names.begin(), hwloc_way_names.end(), word);
        if (word != "io") {
            std::string& before = chosen[word.starts_with("copies=") ? 2 : word.starts_with("at=")];
            if (!before.empty() && before != word) {
                return fail(exit_usage, "%s: '%s' and '%s' contradict each other", what.c_str(),
                            before.c_str(), word.c_str());
            }
            before = word;
        }
        if (way != hwloc_way_names.end()) {
            sharing.way = static_cast<HwlocWay>(way - hwloc_way_names.begin());
        } else if (word == "io") {
            sharing.devices = true;
        } else if (word == "at=largest") {
            sharing.place = HolePlace::largest;
        } else if (word == "at=before-heap") {
            sharing.place = HolePlace::before_heap;
        } else if (word == "at=after-heap") {
            sharing.place = HolePlace::after_heap;
        } else if (word.starts_with("at=0x")) {
            char* rest = nullptr;
            errno = 0;
            sharing.address = std::strtoull(word.c_str() + 3, &rest, 16);
            const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
            if (*rest != '\0' || errno != 0 || sharing.address == 0 ||
                sharing.address % page != 0) {
                return fail(exit_usage, "%s: '%s' is no address of a page", what.c_str(),
                            word.c_str());
            }
        } else if (!word.starts_with("copies=") ||
                   !whole_number(word.substr(7), copies_limit, sharing.copies)) {
            return fail(exit_usage,
                        "%s understands auto, shmem, xml, native, io, at=largest, at=before-heap, "
                        "at=after-heap, at=0xADDRESS and copies=1 to %u, with commas between "
                        "them, not '%s'",
                        what.c_str(), copies_limit, word.c_str());
        }
    }
    return {};
}

Error parse_balance_at(const std::string& what, const std::string& value, CommandLine& line) {
    constexpr std::uint32_t most = 1'000'000'000;
    line.balance_at_given = true;
    line.balance_period_s = 0;
    line.balance_collectives = 0;
    if (value == "hints") {
        return {};
    }
    if (value == "collectives") {
        line.balance_collectives = 1;
        return {};
    }
    if (value.starts_with("collectives=") &&
        whole_number(value.substr(value.find('=') + 1), most, line.balance_collectives)) {
        return {};
    }
    char* end = nullptr;
    line.balance_period_s = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' ||
        !(line.balance_period_s >= 0.005 && line.balance_period_s <= 1e6)) {
        return fail(exit_usage,
                    "%s needs hints, collectives, collectives=N, or a time from 0.005 seconds, "
                    "not '%s'",
                    what.c_str(), value.c_str());
    }
    return {};
}

Error parse_written_file(const std::string& what, const std::string& value, std::string& path) {
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(value, error);
    if (value.empty() || error) {
        return fail(exit_usage, "%s needs the name of a file", what.c_str());
    }
    struct stat status {};
    if (stat(absolute.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
        return fail(exit_usage, "%s: %s is no file that can be replaced", what.c_str(),
                    value.c_str());
    }
    if (!absolute.has_filename() || access(absolute.parent_path().c_str(), W_OK | X_OK) != 0) {
        return fail(exit_usage, "%s: %s can't be written: %s", what.c_str(), value.c_str(),
                    std::strerror(absolute.has_filename() ? errno : EISDIR));
    }
    path = absolute;
    return {};
}

const char* name_of(BindTo bind_to) {
    const auto* found =
        std::find_if(bind_to_names.begin(), bind_to_names.end(),
                     [&](const BindToName& name) { return name.bind_to == bind_to; });
    return found->name.data();
}

} // namespace warren::launch
