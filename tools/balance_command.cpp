#include "balance_command.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/futex.hpp"
#include "commands.hpp"
#include "runtime/balance/balancer.hpp"

namespace warren::tools {

namespace {

void show(const char* name, const balance::Matrix& matrix, const balance::Placement& placement,
          double us) {
    std::printf("%-10s %9.1f %% %7u %14.3f %12.1f\n", name,
                100 * balance::imbalance(balance::worker_loads(matrix, placement)),
                balance::moves(matrix, placement), balance::traffic(matrix, placement) * 1e-6, us);
}

// Reads the whole file. False: errno says why not.
bool read(const std::string& path, std::string& text) {
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (file == nullptr) {
        return false;
    }
    char part[1 << 14];
    while (const std::size_t got = std::fread(part, 1, sizeof part, file)) {
        text.append(part, got);
    }
    const int error = std::ferror(file) != 0 ? errno : 0;
    std::fclose(file);
    errno = error;
    return error == 0;
}

} // namespace

int balance_command(const std::vector<std::string>& words) {
    if (words.empty() || words[0].starts_with("-")) {
        std::fputs(usage("balance").c_str(), stderr);
        return 2;
    }
    std::string text;
    if (!read(words[0], text)) {
        std::fprintf(stderr, "warren balance: %s can't be read: %s\n", words[0].c_str(),
                     std::strerror(errno));
        return 1;
    }
    balance::Matrix matrix;
    if (Error error = balance::parse(text, matrix)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        std::fprintf(stderr, "warren balance: %s: %s\n", words[0].c_str(), record->text.c_str());
        return 1;
    }
    std::vector<const balance::Balancer*> chosen;
    for (std::size_t index = 1; index < words.size(); ++index) {
        chosen.push_back(balance::find_balancer(words[index]));
        if (chosen.back() == nullptr) {
            std::fprintf(stderr, "warren balance: there is no balancer '%s'\n",
                         words[index].c_str());
            return 2;
        }
    }
    if (chosen.empty()) {
        for (const balance::Balancer& one : balance::balancers()) {
            chosen.push_back(&one);
        }
    }
    std::printf("%u ranks on %u workers; imbalance of ranks %.1f %%\n", matrix.ranks(),
                matrix.workers, 100 * balance::imbalance(matrix.loads));
    std::printf("%-10s %11s %7s %14s %12s\n", "balancer", "imbalance", "moves", "MB x distance",
                "its time, us");
    for (const balance::Balancer* one : chosen) {
        const std::uint64_t begin = monotonic_ns();
        const balance::Placement placement = one->place(matrix);
        const std::uint64_t end = monotonic_ns();
        show(one->name, matrix, placement, static_cast<double>(end - begin) * 1e-3);
    }
    return 0;
}

} // namespace warren::tools
