#include "topology/guess.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "warren/topology.h"

namespace warren::topology {

namespace {

constexpr std::uint32_t higher = WARREN_ATTRIBUTE_HIGHER_IS_BETTER;
constexpr std::uint32_t lower = WARREN_ATTRIBUTE_LOWER_IS_BETTER;
constexpr std::uint32_t with_initiator = WARREN_ATTRIBUTE_NEEDS_INITIATOR;

// Typical values of a kind of memory, seen from the processors next to it: MiB/s of one node's
// memory, and ns. Where anything is known, only the ratios matter.
struct MemoryKind {
    const char* subtype; // the beginning of hwloc's names
    double bandwidth;
    double latency;
};
constexpr MemoryKind kinds[] = {
    {"DRAM", 100'000, 100}, {"HBM", 400'000, 130}, {"MCDRAM", 400'000, 130},   {"SPM", 800'000, 50},
    {"NVM", 30'000, 300},   {"CXL", 40'000, 250},  {"GPUMemory", 40'000, 600},
};

constexpr double local_distance = 10; // as ACPI has it
constexpr double remote_distance = 21;

const MemoryKind& kind_of(const Object& node) {
    for (const MemoryKind& kind : kinds) {
        if (node.subtype && node.subtype->rfind(kind.subtype, 0) == 0) {
            return kind;
        }
    }
    for (const Info& info : node.infos) {
        if (info.name == "DAXDevice" || info.name == "CXLDevice") {
            return info.name == "CXLDevice" ? kinds[5] : kinds[4];
        }
    }
    return kinds[0];
}

bool is_latency(std::size_t attribute) {
    return attribute == WARREN_ATTRIBUTE_LATENCY || attribute == WARREN_ATTRIBUTE_READ_LATENCY ||
           attribute == WARREN_ATTRIBUTE_WRITE_LATENCY;
}

class Completion {
  public:
    explicit Completion(Description& description)
        : description_(description), targets_(description.targets()) {}

    void run();

  private:
    using Cell = AttributeMatrix::Cell;

    void find_initiators();
    std::vector<bool> signature(std::size_t cpu) const;
    void find_distances();
    AttributeMatrix known(const Attribute& attribute) const;
    void borrow(std::size_t combined, std::size_t reading, std::size_t writing);
    void guess(std::size_t attribute);
    double usual(std::size_t attribute, std::size_t target) const;
    void sort_targets(AttributeMatrix& matrix, bool by_nearness) const;

    bool is_local(std::size_t row, std::size_t target) const {
        return intersects(description_.initiators[row].cpus,
                          description_.objects[targets_[target]].cpus);
    }
    double distance(std::size_t row, std::size_t target) const {
        return distance_[row * targets_.size() + target];
    }
    Cell& cell(std::size_t attribute, std::size_t row, std::size_t target) const {
        return description_.matrices[attribute].cells[row * targets_.size() + target];
    }

    Description& description_;
    const std::vector<std::uint32_t> targets_;
    std::vector<double> distance_; // initiators · targets
};

// The memory and attribute values of a processor as bits: processors with equal bits are alike.
std::vector<bool> Completion::signature(std::size_t cpu) const {
    std::vector<bool> bits;
    for (const std::uint32_t target : targets_) {
        bits.push_back(has_bit(description_.objects[target].cpus, cpu));
    }
    for (const Attribute& attribute : description_.attributes) {
        const Bits* before = nullptr; // each of many targets has the same initiators
        for (const AttributeValue& value : attribute.values) {
            if (value.initiator_object == none &&
                (before == nullptr || *before != value.initiator_cpus)) {
                bits.push_back(has_bit(value.initiator_cpus, cpu));
                before = &value.initiator_cpus;
            }
        }
    }
    return bits;
}

void Completion::find_initiators() {
    std::map<std::vector<bool>, std::size_t> row_of;
    std::vector<Initiator>& rows = description_.initiators;
    rows.clear();
    for (const Level& level : description_.levels) {
        for (std::uint32_t index = 0;
             static_cast<ObjectType>(level.type) == ObjectType::pu && index < level.count;
             ++index) {
            const std::uint32_t cpu = description_.objects[level.first + index].os_index;
            const auto [entry, is_new] = row_of.try_emplace(signature(cpu), rows.size());
            if (is_new) {
                rows.emplace_back();
            }
            add_bit(rows[entry->second].cpus, cpu);
        }
    }
    for (const Attribute& attribute : description_.attributes) {
        for (const AttributeValue& value : attribute.values) {
            const std::uint32_t device = value.initiator_object;
            if (device == none ||
                std::any_of(rows.begin(), rows.end(),
                            [device](const Initiator& row) { return row.object == device; })) {
                continue;
            }
            std::uint32_t place = device;
            while (!description_.objects[place].has_sets) {
                place = description_.objects[place].parent;
            }
            rows.push_back({description_.objects[place].cpus, device});
        }
    }
}

void Completion::find_distances() {
    const std::vector<Initiator>& rows = description_.initiators;
    // From node to node.
    std::vector<double> between(targets_.size() * targets_.size(), 0);
    for (const Distances& matrix : description_.distances) {
        if ((matrix.kind & WARREN_DISTANCES_LATENCY) == 0) {
            continue;
        }
        const std::size_t count = matrix.objects.size();
        const auto place = [this](std::uint32_t object) {
            return static_cast<std::size_t>(std::find(targets_.begin(), targets_.end(), object) -
                                            targets_.begin());
        };
        for (std::size_t one = 0; one < count; ++one) {
            for (std::size_t other = 0; other < count; ++other) {
                const std::size_t from = place(matrix.objects[one]);
                const std::size_t to = place(matrix.objects[other]);
                if (from < targets_.size() && to < targets_.size()) {
                    between[from * targets_.size() + to] =
                        static_cast<double>(matrix.values[one * count + other]);
                }
            }
        }
    }
    distance_.assign(rows.size() * targets_.size(), 0);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        for (std::size_t target = 0; target < targets_.size(); ++target) {
            double best = 0;
            for (std::size_t from = 0; from < targets_.size(); ++from) {
                const double one = between[from * targets_.size() + target];
                if (one > 0 && is_local(row, from) && (best == 0 || one < best)) {
                    best = one;
                }
            }
            if (best == 0) {
                best = is_local(row, target) ? local_distance : remote_distance;
            }
            distance_[row * targets_.size() + target] = best;
        }
    }
}

AttributeMatrix Completion::known(const Attribute& attribute) const {
    const std::vector<Initiator>& rows = description_.initiators;
    AttributeMatrix matrix;
    matrix.name = attribute.name;
    matrix.flags = attribute.flags;
    const bool has_rows = (attribute.flags & with_initiator) != 0;
    matrix.rows = has_rows ? rows.size() : 1;
    matrix.cells.resize(matrix.rows * targets_.size());
    for (const AttributeValue& value : attribute.values) {
        for (std::size_t row = 0; row < matrix.rows; ++row) {
            const bool is_meant =
                !has_rows || (value.initiator_object == rows[row].object &&
                              (value.initiator_object != none || is_empty(value.initiator_cpus) ||
                               includes(value.initiator_cpus, rows[row].cpus)));
            if (!is_meant || value.target >= targets_.size()) {
                continue;
            }
            Cell& own = matrix.cells[row * targets_.size() + value.target];
            if (own.origin == 0 ||
                (own.origin == WARREN_ORIGIN_FIRMWARE && value.origin == WARREN_ORIGIN_MEASURED)) {
                own = {value.value, value.origin};
            }
        }
    }
    return matrix;
}

// Rule 1.
void Completion::borrow(std::size_t combined, std::size_t reading, std::size_t writing) {
    for (std::size_t row = 0; row < description_.initiators.size(); ++row) {
        for (std::size_t target = 0; target < targets_.size(); ++target) {
            Cell& both = cell(combined, row, target);
            Cell& read = cell(reading, row, target);
            Cell& write = cell(writing, row, target);
            if (both.origin == 0 && (read.origin != 0 || write.origin != 0)) {
                const std::uint64_t one = read.origin != 0 ? read.value : write.value;
                const std::uint64_t other = write.origin != 0 ? write.value : read.value;
                both = {std::midpoint(one, other), WARREN_ORIGIN_GUESSED};
            }
            for (Cell* part : {&read, &write}) {
                if (part->origin == 0 && both.origin != 0) {
                    *part = {both.value, WARREN_ORIGIN_GUESSED};
                }
            }
        }
    }
}

double Completion::usual(std::size_t attribute, std::size_t target) const {
    const Object& node = description_.objects[targets_[target]];
    const MemoryKind& kind = kind_of(node);
    const auto of = [&](const MemoryKind& one) {
        return is_latency(attribute) ? one.latency : one.bandwidth;
    };
    if (node.parent == none || description_.type_of(node.parent) != ObjectType::memory_cache) {
        return of(kind);
    }
    const MemoryKind& cache = &kind == &kinds[0] ? kinds[1] : kinds[0];
    return std::sqrt(of(kind) * of(cache));
}

// Rules 2 and 3.
void Completion::guess(std::size_t attribute) {
    const std::size_t rows = description_.initiators.size();
    const std::size_t count = targets_.size();
    const auto scaled = [&](double value, double by) {
        const double result = is_latency(attribute) ? value * by : value / by;
        constexpr double largest = 1e18;
        const double rounded_up_by_half = std::clamp(result, 1.0, largest) + 0.5; // needs no libm
        return static_cast<std::uint64_t>(rounded_up_by_half);
    };
    // Each target's nearest initiator among those with a value, and among all.
    std::vector<std::size_t> nearest_known(count, rows);
    std::vector<std::size_t> nearest(count, rows);
    double ratios = 0;
    std::size_t known_targets = 0;
    for (std::size_t target = 0; target < count; ++target) {
        for (std::size_t row = 0; row < rows; ++row) {
            const auto is_nearer = [&](std::size_t best) {
                return best == rows || distance(row, target) < distance(best, target);
            };
            if (is_nearer(nearest[target])) {
                nearest[target] = row;
            }
            if (cell(attribute, row, target).origin != 0 && is_nearer(nearest_known[target])) {
                nearest_known[target] = row;
            }
        }
        if (nearest_known[target] < rows) {
            ratios += static_cast<double>(cell(attribute, nearest_known[target], target).value) /
                      usual(attribute, target);
            ++known_targets;
        }
    }
    const double scale =
        known_targets > 0 && ratios > 0 ? ratios / static_cast<double>(known_targets) : 1;
    for (std::size_t target = 0; target < count; ++target) {
        const std::size_t from =
            nearest_known[target] < rows ? nearest_known[target] : nearest[target];
        if (from == rows) {
            continue;
        }
        const double base = nearest_known[target] < rows
                                ? static_cast<double>(cell(attribute, from, target).value)
                                : usual(attribute, target) * scale;
        for (std::size_t row = 0; row < rows; ++row) {
            Cell& one = cell(attribute, row, target);
            if (one.origin == 0) {
                one = {scaled(base, distance(row, target) / distance(from, target)),
                       WARREN_ORIGIN_GUESSED};
            }
        }
    }
}

void Completion::sort_targets(AttributeMatrix& matrix, bool by_nearness) const {
    const std::size_t count = targets_.size();
    const bool is_lower_better = (matrix.flags & lower) != 0;
    matrix.order.clear();
    for (std::size_t row = 0; row < description_.initiators.size(); ++row) {
        std::vector<std::uint16_t> order(count);
        std::iota(order.begin(), order.end(), std::uint16_t{0});
        const auto cell = [&](std::size_t target) {
            return matrix.cells[(matrix.rows == 1 ? 0 : row) * count + target];
        };
        std::vector<bool> local(count);
        for (std::size_t target = 0; target < count; ++target) {
            local[target] = is_local(row, target);
        }
        std::stable_sort(order.begin(), order.end(), [&](std::uint16_t one, std::uint16_t other) {
            const Cell first = cell(one);
            const Cell second = cell(other);
            if (!by_nearness && (first.origin != 0) != (second.origin != 0)) {
                return first.origin != 0;
            }
            if (!by_nearness && first.value != second.value) {
                return (first.value < second.value) == is_lower_better;
            }
            if (local[one] != local[other]) {
                return bool{local[one]};
            }
            return distance(row, one) < distance(row, other);
        });
        matrix.order.insert(matrix.order.end(), order.begin(), order.end());
    }
}

void Completion::run() {
    find_initiators();
    find_distances();
    description_.matrices.clear();
    for (const Attribute& attribute : description_.attributes) {
        description_.matrices.push_back(known(attribute));
    }
    borrow(WARREN_ATTRIBUTE_BANDWIDTH, WARREN_ATTRIBUTE_READ_BANDWIDTH,
           WARREN_ATTRIBUTE_WRITE_BANDWIDTH);
    borrow(WARREN_ATTRIBUTE_LATENCY, WARREN_ATTRIBUTE_READ_LATENCY, WARREN_ATTRIBUTE_WRITE_LATENCY);
    for (std::size_t attribute = WARREN_ATTRIBUTE_BANDWIDTH;
         attribute < WARREN_ATTRIBUTE_FIRST_OTHER; ++attribute) {
        guess(attribute);
    }
    for (std::size_t attribute = 0; attribute < description_.matrices.size(); ++attribute) {
        sort_targets(description_.matrices[attribute], attribute == WARREN_ATTRIBUTE_LOCALITY);
    }
}

} // namespace

std::vector<Attribute> standard_attributes() {
    return {{"Capacity", higher, {}},
            {"Locality", lower, {}},
            {"Bandwidth", higher | with_initiator, {}},
            {"Latency", lower | with_initiator, {}},
            {"ReadBandwidth", higher | with_initiator, {}},
            {"WriteBandwidth", higher | with_initiator, {}},
            {"ReadLatency", lower | with_initiator, {}},
            {"WriteLatency", lower | with_initiator, {}}};
}

void complete_attributes(Description& description) {
    Completion completion(description);
    completion.run();
}

} // namespace warren::topology
