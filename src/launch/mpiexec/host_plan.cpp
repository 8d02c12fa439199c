#include "launch/mpiexec/host_plan.hpp"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/mpiexec/errors.hpp"

namespace warren::launch {

namespace {

constexpr std::uint64_t magic = 0x57415252'504c414e; // "WARRPLAN"

class Writer {
  public:
    void number(std::uint64_t value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void descriptor(int value) { number(static_cast<std::uint64_t>(value) + 1); }
    void text(const std::string& value) {
        number(value.size());
        bytes_ += value;
    }
    void texts(const std::vector<std::string>& values) {
        number(values.size());
        for (const std::string& value : values) {
            text(value);
        }
    }
    const std::string& bytes() const { return bytes_; }

  private:
    std::string bytes_;
};

// Reads what is there; once something is missing, everything is empty.
class Reader {
  public:
    explicit Reader(const std::string& bytes) : bytes_(bytes) {}

    bool sound() const { return sound_; }
    bool at_end() const { return at_ == bytes_.size(); }

    std::uint64_t number() {
        std::uint64_t value = 0;
        if (const char* here = take(sizeof value)) {
            std::memcpy(&value, here, sizeof value);
        }
        return value;
    }
    // The number of elements of a list; each takes at least one number.
    std::uint64_t count() {
        const std::uint64_t value = number();
        sound_ = sound_ && value <= (bytes_.size() - at_) / sizeof value;
        return sound_ ? value : 0;
    }
    int descriptor() { return static_cast<int>(static_cast<std::uint32_t>(number()) - 1U); }
    std::string text() {
        const std::uint64_t size = number();
        const char* here = take(size);
        return here != nullptr ? std::string(here, size) : "";
    }
    std::vector<std::string> texts() {
        std::vector<std::string> values(count());
        for (std::string& value : values) {
            value = text();
        }
        return values;
    }

  private:
    const char* take(std::uint64_t size) {
        sound_ = sound_ && size <= bytes_.size() - at_;
        if (!sound_) {
            return nullptr;
        }
        const char* here = bytes_.data() + at_;
        at_ += size;
        return here;
    }

    const std::string& bytes_;
    std::size_t at_ = 0;
    bool sound_ = true;
};

bool read_programs(Reader& reader, HostPlan& plan) {
    bool sound = true;
    plan.programs.resize(reader.count());
    for (HostPlan::Program& program : plan.programs) {
        program.path = reader.text();
        program.directory = reader.text();
        program.own_allocator = reader.number() != 0;
        program.arguments = reader.texts();
        program.environment = reader.texts();
        program.preloaded = reader.texts();
        sound = sound && !program.arguments.empty() && !program.environment.empty();
    }
    return sound;
}

bool read_ranks(Reader& reader, HostPlan& plan) {
    bool sound = true;
    plan.ranks.resize(reader.count());
    for (HostPlan::Rank& rank : plan.ranks) {
        rank.program = static_cast<std::uint32_t>(reader.number());
        rank.input = reader.descriptor();
        rank.output = reader.descriptor();
        rank.errors = reader.descriptor();
        rank.manager = reader.descriptor();
        std::vector<std::uint64_t> words(reader.count());
        for (std::uint64_t& word : words) {
            word = reader.number();
        }
        sound = sound && rank.program < plan.programs.size();
        if (!words.empty()) {
            auto set = std::make_shared<CpuSet>();
            sound = sound && set->assign(words);
            rank.processors = std::move(set);
        }
    }
    return sound;
}

} // namespace

Error HostPlan::write(int& descriptor) const {
    Writer writer;
    writer.number(magic);
    writer.number(first_rank);
    writer.number(rank_stride);
    writer.descriptor(reports);
    writer.number(stack_bytes);
    writer.number(verbose ? 1 : 0);
    writer.descriptor(segment);
    writer.number(loads_offset);
    writer.text(balancer);
    writer.number(balance_period_ns);
    writer.number(balance_collectives);
    writer.text(balance_record);
    writer.number(distances.size());
    for (const std::uint32_t distance : distances) {
        writer.number(distance);
    }
    writer.number(nodes.size());
    for (const int node : nodes) {
        writer.number(static_cast<std::uint64_t>(node));
    }
    writer.number(steals ? 1 : 0);
    writer.number(workers.size());
    for (const int processor : workers) {
        writer.descriptor(processor);
    }
    writer.text(library);
    writer.number(kept.size());
    for (const int one : kept) {
        writer.descriptor(one);
    }
    writer.number(programs.size());
    for (const Program& program : programs) {
        writer.text(program.path);
        writer.text(program.directory);
        writer.number(program.own_allocator ? 1 : 0);
        writer.texts(program.arguments);
        writer.texts(program.environment);
        writer.texts(program.preloaded);
    }
    writer.number(ranks.size());
    for (const Rank& rank : ranks) {
        writer.number(rank.program);
        writer.descriptor(rank.input);
        writer.descriptor(rank.output);
        writer.descriptor(rank.errors);
        writer.descriptor(rank.manager);
        const auto words = rank.processors != nullptr ? rank.processors->words()
                                                      : std::span<const std::uint64_t>();
        writer.number(words.size());
        for (const std::uint64_t word : words) {
            writer.number(word);
        }
    }
    descriptor = memfd_create("warren-plan", MFD_CLOEXEC);
    const std::string& bytes = writer.bytes();
    if (descriptor < 0 ||
        ::write(descriptor, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
        return fail(exit_failure, "the plan for the process of all ranks: %s",
                    std::strerror(errno));
    }
    return {};
}

Error HostPlan::read(int descriptor, HostPlan& plan) {
    struct stat status;
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        return fail(exit_failure, "descriptor %d is no plan: this program is for mpiexec only",
                    descriptor);
    }
    std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
    if (pread(descriptor, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        return fail(exit_failure, "reading the plan: %s", std::strerror(errno));
    }
    Reader reader(bytes);
    plan = {};
    bool sound = reader.number() == magic;
    plan.first_rank = static_cast<std::uint32_t>(reader.number());
    plan.rank_stride = static_cast<std::uint32_t>(reader.number());
    plan.reports = reader.descriptor();
    plan.stack_bytes = reader.number();
    plan.verbose = reader.number() != 0;
    plan.segment = reader.descriptor();
    plan.loads_offset = reader.number();
    plan.balancer = reader.text();
    plan.balance_period_ns = reader.number();
    plan.balance_collectives = static_cast<std::uint32_t>(reader.number());
    plan.balance_record = reader.text();
    plan.distances.resize(reader.count());
    for (std::uint32_t& distance : plan.distances) {
        distance = static_cast<std::uint32_t>(reader.number());
    }
    plan.nodes.resize(reader.count());
    for (int& node : plan.nodes) {
        node = static_cast<int>(static_cast<std::uint32_t>(reader.number()));
    }
    plan.steals = reader.number() != 0;
    plan.workers.resize(reader.count());
    for (int& processor : plan.workers) {
        processor = reader.descriptor();
    }
    sound = sound && (plan.nodes.empty() || plan.nodes.size() == plan.workers.size());
    plan.library = reader.text();
    plan.kept.resize(reader.count());
    for (int& one : plan.kept) {
        one = reader.descriptor();
    }
    sound = read_programs(reader, plan) && sound;
    sound = read_ranks(reader, plan) && sound;
    if (!sound || !reader.sound() || !reader.at_end() || plan.ranks.empty()) {
        return fail(exit_failure, "the plan in descriptor %d is damaged, or of another version",
                    descriptor);
    }
    return {};
}

} // namespace warren::launch
