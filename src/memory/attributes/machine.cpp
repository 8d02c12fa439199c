#include "memory/attributes/machine.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <sched.h>

#include "memory/heap/numa.hpp"
#include "topology/handle.hpp"

namespace warren::memory {

namespace {

// As many attributes as a program will register; each costs a comparison per look-up by name.
constexpr std::size_t max_registered = 256;

// The object type of a name: the topology's names, and others that users write.
int type_by_name(const std::string& name) {
    constexpr std::pair<std::string_view, int> others[] = {{"numa", WARREN_OBJECT_NUMA_NODE},
                                                           {"node", WARREN_OBJECT_NUMA_NODE},
                                                           {"socket", WARREN_OBJECT_PACKAGE},
                                                           {"cpu", WARREN_OBJECT_PU}};
    for (const auto& [other, type] : others) {
        if (other == name) {
            return type;
        }
    }
    return warren_object_type_by_name(name.c_str());
}

// The number that a predefined attribute has in the topology; all but what is available now.
std::uint32_t topology_attribute(int attribute) {
    return attribute < WARREN_MEM_FIRST_OTHER_ATTRIBUTE
               ? static_cast<std::uint32_t>(attribute)
               : static_cast<std::uint32_t>(attribute - WARREN_MEM_FIRST_OTHER_ATTRIBUTE +
                                            WARREN_ATTRIBUTE_FIRST_OTHER);
}

Attribute described_by(std::string_view name, unsigned flags) {
    return {name, Unit::none, (flags & WARREN_ATTRIBUTE_HIGHER_IS_BETTER) != 0,
            (flags & WARREN_ATTRIBUTE_NEEDS_INITIATOR) != 0};
}

bool has_bit(const std::vector<std::uint64_t>& bitmap, std::uint32_t bit) {
    return bit / 64 < bitmap.size() && (bitmap[bit / 64] >> (bit % 64) & 1) != 0;
}

Error no_value_known(std::string_view name, std::uint32_t node) {
    return fail(WARREN_MEM_ERR_NO_VALUE, "nobody knows the %.*s of memory %u from there",
                static_cast<int>(name.size()), name.data(), node);
}

} // namespace

static_assert(WARREN_MEM_CAPACITY == int{WARREN_ATTRIBUTE_CAPACITY} &&
              WARREN_MEM_LOCALITY == int{WARREN_ATTRIBUTE_LOCALITY} &&
              WARREN_MEM_BANDWIDTH == int{WARREN_ATTRIBUTE_BANDWIDTH} &&
              WARREN_MEM_LATENCY == int{WARREN_ATTRIBUTE_LATENCY} &&
              WARREN_MEM_READ_BANDWIDTH == int{WARREN_ATTRIBUTE_READ_BANDWIDTH} &&
              WARREN_MEM_WRITE_BANDWIDTH == int{WARREN_ATTRIBUTE_WRITE_BANDWIDTH} &&
              WARREN_MEM_READ_LATENCY == int{WARREN_ATTRIBUTE_READ_LATENCY} &&
              WARREN_MEM_WRITE_LATENCY == int{WARREN_ATTRIBUTE_WRITE_LATENCY});

Machine::Machine(const warren_topology* topology, bool owned) : topology_(topology), owned_(owned) {
    const int way = warren_topology_way(topology);
    this_node_ = (way == WARREN_TOPOLOGY_NODE || way == WARREN_TOPOLOGY_NATIVE) &&
                 warren_object_info(topology, WARREN_NO_OBJECT, topology::this_system_key);
    const std::uint32_t count = warren_topology_count(topology, WARREN_OBJECT_NUMA_NODE);
    for (std::uint32_t index = 0; index < count; ++index) {
        nodes_.push_back(warren_object_os_index(
            topology, warren_topology_object(topology, WARREN_OBJECT_NUMA_NODE, index)));
    }
    if (this_node_) {
        // Only nodes that the process may use: placing memory on others would be refused.
        const NodeSet allowed = allowed_nodes();
        allowed_.assign(std::begin(allowed.words), std::end(allowed.words));
    }
}

Machine::~Machine() {
    if (owned_) {
        warren_topology_close(const_cast<warren_topology*>(topology_));
    }
}

constinit std::atomic<std::uint64_t> Machine::changes{1};

Error Machine::here(Machine*& machine) {
    struct Made {
        Machine* machine = nullptr;
        char problem[sizeof(warren_topology_report::problem)] = {};
    };
    // Stays to the end of the process: memory is allocated until then.
    static const Made made = [] {
        Made making;
        warren_topology* topology = nullptr;
        warren_topology_report report{};
        if (warren_topology_load(&topology, &report) != WARREN_TOPOLOGY_SUCCESS) {
            std::memcpy(making.problem, report.problem, sizeof making.problem);
            return making;
        }
        making.machine = new Machine(topology, true);
        return making;
    }();
    machine = made.machine;
    return machine != nullptr
               ? Error{}
               : fail(WARREN_MEM_ERR_MACHINE, "this node can't be described: %s", made.problem);
}

Error Machine::check_node(std::uint32_t node) const {
    if (std::find(nodes_.begin(), nodes_.end(), node) == nodes_.end()) {
        return fail(WARREN_MEM_ERR_ARG, "the machine has no memory (NUMA node) %u", node);
    }
    return {};
}

Error Machine::add_processors(warren_set set, Users& users) const {
    for (std::uint32_t cpu = warren_set_next(set, 0); cpu != WARREN_NO_INDEX;
         cpu = warren_set_next(set, cpu + 1)) {
        const std::uint32_t row = warren_topology_initiator_of_cpu(topology_, cpu);
        if (row == WARREN_NO_INDEX) {
            return fail(WARREN_MEM_ERR_ARG, "the machine has no processor %u", cpu);
        }
        if (std::find(users.rows.begin(), users.rows.end(), row) == users.rows.end()) {
            users.rows.push_back(row);
        }
        users.processors.resize(std::max<std::size_t>(users.processors.size(), cpu / 64 + 1));
        users.processors[cpu / 64] |= std::uint64_t{1} << (cpu % 64);
    }
    return {};
}

Error Machine::resolve(const Initiator& initiator, Users& users) const {
    users = {};
    switch (initiator.kind) {
    case Initiator::Kind::here: {
        const int cpu = sched_getcpu();
        if (cpu < 0 || !this_node_) {
            return fail(WARREN_MEM_ERR_ARG, "'here' is no place in the machine that is described: "
                                            "say an initiator, as in from=core:0");
        }
        std::vector<std::uint64_t> word(static_cast<std::size_t>(cpu) / 64 + 1);
        word.back() = std::uint64_t{1} << (cpu % 64);
        return add_processors({word.data(), 0, static_cast<std::uint32_t>(word.size())}, users);
    }
    case Initiator::Kind::processors:
        return add_processors({initiator.processors.data(), 0,
                               static_cast<std::uint32_t>(initiator.processors.size())},
                              users);
    default:
        break;
    }
    const int type = type_by_name(initiator.type);
    if (type < 0) {
        return fail(WARREN_MEM_ERR_ARG, "initiator %s: there is no type of objects '%s'",
                    text_of(initiator).c_str(), initiator.type.c_str());
    }
    const warren_object object = warren_topology_object(topology_, type, initiator.index);
    if (object == WARREN_NO_OBJECT) {
        return fail(WARREN_MEM_ERR_ARG, "initiator %s: the machine has %u of that type",
                    text_of(initiator).c_str(), warren_topology_count(topology_, type));
    }
    const std::uint32_t row = warren_topology_initiator_of_object(topology_, object);
    warren_set cpus{};
    warren_object device = WARREN_NO_OBJECT;
    if (row != WARREN_NO_INDEX &&
        warren_topology_initiator(topology_, row, &cpus, &device) == WARREN_TOPOLOGY_SUCCESS &&
        device == object) {
        if (Error error = add_processors(cpus, users)) { // where it is
            return error;
        }
        users.rows.assign(1, row);
        return {};
    }
    if (Error error = add_processors(warren_object_cpus(topology_, object), users)) {
        return error;
    }
    if (users.rows.empty()) {
        return fail(WARREN_MEM_ERR_ARG, "initiator %s has no processors",
                    text_of(initiator).c_str());
    }
    return {};
}

Relation Machine::relation(const Users& users, std::uint32_t node) const {
    const warren_object object =
        warren_topology_by_os_index(topology_, WARREN_OBJECT_NUMA_NODE, node);
    const char* subtype = warren_object_subtype(topology_, object);
    if (subtype != nullptr && std::strcmp(subtype, "GPUMemory") == 0) {
        return Relation::device;
    }
    const warren_set cpus = warren_object_cpus(topology_, object);
    if (warren_set_count(cpus) == 0) {
        return Relation::cpuless;
    }
    const warren_set users_set{users.processors.data(), 0,
                               static_cast<std::uint32_t>(users.processors.size())};
    return warren_set_intersects(cpus, users_set) != 0 ? Relation::local : Relation::remote;
}

std::uint32_t Machine::others_of_topology() const {
    return warren_topology_attributes(topology_) - WARREN_ATTRIBUTE_FIRST_OTHER;
}

Error Machine::find(std::string_view name, int& attribute) const {
    attribute = predefined_attribute_by_name(name);
    if (attribute >= 0) {
        return {};
    }
    const std::string text(name);
    const std::uint32_t of_topology = warren_topology_attribute_by_name(topology_, text.c_str());
    if (of_topology != WARREN_NO_INDEX && of_topology >= WARREN_ATTRIBUTE_FIRST_OTHER) {
        attribute = static_cast<int>(of_topology - WARREN_ATTRIBUTE_FIRST_OTHER) +
                    WARREN_MEM_FIRST_OTHER_ATTRIBUTE;
        return {};
    }
    const std::shared_lock guard(lock_);
    for (std::size_t index = 0; index < registered_.size(); ++index) {
        if (registered_[index].name == name) {
            attribute =
                WARREN_MEM_FIRST_OTHER_ATTRIBUTE + static_cast<int>(others_of_topology() + index);
            return {};
        }
    }
    return fail(WARREN_MEM_ERR_ATTRIBUTE, "there is no attribute '%s'", text.c_str());
}

Error Machine::describe(int attribute, Attribute& described, std::string& name) const {
    if (const Attribute* predefined = predefined_attribute(attribute)) {
        described = *predefined;
        return {};
    }
    if (attribute >= WARREN_MEM_FIRST_OTHER_ATTRIBUTE) {
        const auto index = static_cast<std::uint32_t>(attribute - WARREN_MEM_FIRST_OTHER_ATTRIBUTE);
        if (index < others_of_topology()) {
            const std::uint32_t number = topology_attribute(attribute);
            name = warren_topology_attribute_name(topology_, number);
            described = described_by(name, warren_topology_attribute_flags(topology_, number));
            return {};
        }
        const std::shared_lock guard(lock_);
        const std::size_t place = index - others_of_topology();
        if (place < registered_.size()) {
            name = registered_[place].name;
            described = described_by(name, registered_[place].flags);
            return {};
        }
    }
    return fail(WARREN_MEM_ERR_ATTRIBUTE, "there is no attribute %d", attribute);
}

Error Machine::register_attribute(std::string_view name, unsigned flags, int& attribute) {
    constexpr unsigned directions =
        WARREN_ATTRIBUTE_HIGHER_IS_BETTER | WARREN_ATTRIBUTE_LOWER_IS_BETTER;
    const unsigned direction = flags & directions;
    if (!is_attribute_name(name) || direction == 0 || direction == directions ||
        (flags & ~(directions | WARREN_ATTRIBUTE_NEEDS_INITIATOR)) != 0) {
        return fail(WARREN_MEM_ERR_ARG,
                    "an attribute '%.*s' with flags 0x%x: a name is letters, digits and _, begins "
                    "with a letter and has less than 64; either more or less is better",
                    static_cast<int>(std::min<std::size_t>(name.size(), 80)), name.data(), flags);
    }
    if (Error missing = find(name, attribute)) {
        missing.drop();
    } else {
        return fail(WARREN_MEM_ERR_ARG, "there is an attribute '%.*s' already",
                    static_cast<int>(name.size()), name.data());
    }
    const std::unique_lock guard(lock_);
    for (const Registered& other : registered_) { // by another thread, meanwhile
        if (other.name == name) {
            return fail(WARREN_MEM_ERR_ARG, "there is an attribute '%s' already",
                        other.name.c_str());
        }
    }
    if (registered_.size() == max_registered) {
        return fail(WARREN_MEM_ERR_ARG, "%zu attributes are registered already", max_registered);
    }
    attribute = WARREN_MEM_FIRST_OTHER_ATTRIBUTE +
                static_cast<int>(others_of_topology() + registered_.size());
    registered_.push_back({std::string(name), flags, {}});
    changes.fetch_add(1, std::memory_order_acq_rel);
    return {};
}

Error Machine::set_value(int attribute, const Initiator& initiator, std::uint32_t node,
                         std::uint64_t value) {
    const std::int64_t place = std::int64_t{attribute} - WARREN_MEM_FIRST_OTHER_ATTRIBUTE -
                               std::int64_t{others_of_topology()};
    if (Error error = check_node(node)) {
        return error;
    }
    if (value == no_value) {
        return fail(WARREN_MEM_ERR_ARG, "2^64 - 1 stands for no value");
    }
    Users users;
    bool by_initiator = false;
    {
        const std::shared_lock guard(lock_);
        if (place < 0 || place >= static_cast<std::int64_t>(registered_.size())) {
            return fail(WARREN_MEM_ERR_ATTRIBUTE, "attribute %d is not a registered one",
                        attribute);
        }
        by_initiator = (registered_[static_cast<std::size_t>(place)].flags &
                        WARREN_ATTRIBUTE_NEEDS_INITIATOR) != 0;
    }
    if (by_initiator) {
        if (Error error = resolve(initiator, users)) {
            return error;
        }
    } else {
        users.rows.assign(1, WARREN_NO_INDEX);
    }
    const std::unique_lock guard(lock_);
    for (const std::uint32_t row : users.rows) {
        registered_[static_cast<std::size_t>(place)].values[{row, node}] = value;
    }
    changes.fetch_add(1, std::memory_order_acq_rel);
    return {};
}

Error Machine::value_of_row(int attribute, std::uint32_t row, std::uint32_t node,
                            Value& value) const {
    if (attribute == WARREN_MEM_AVAILABLE) {
        if (!this_node_) {
            return fail(WARREN_MEM_ERR_NO_VALUE, "what is available is known of this node only, "
                                                 "and the machine is described otherwise");
        }
        value.origin = WARREN_MEM_ORIGIN_SYSTEM;
        return read_available("", node, 0, value.value);
    }
    if (attribute == WARREN_MEM_CACHE) {
        value = {cache_bytes(node), WARREN_ORIGIN_FIRMWARE};
        return {};
    }
    const std::int64_t place = std::int64_t{attribute} - WARREN_MEM_FIRST_OTHER_ATTRIBUTE -
                               std::int64_t{others_of_topology()};
    if (place < 0) {
        const std::uint32_t number = topology_attribute(attribute);
        if (warren_topology_value(topology_, number, row, node, &value.value, &value.origin) !=
            WARREN_TOPOLOGY_SUCCESS) {
            return no_value_known(warren_topology_attribute_name(topology_, number), node);
        }
        return {};
    }
    const std::shared_lock guard(lock_);
    const Registered& registered = registered_[static_cast<std::size_t>(place)];
    const bool by_initiator = (registered.flags & WARREN_ATTRIBUTE_NEEDS_INITIATOR) != 0;
    const auto found = registered.values.find({by_initiator ? row : WARREN_NO_INDEX, node});
    if (found == registered.values.end()) {
        return no_value_known(registered.name, node);
    }
    value = {found->second, WARREN_MEM_ORIGIN_PROGRAM};
    return {};
}

Error Machine::value(int attribute, const Users& users, std::uint32_t node, Value& value) const {
    Attribute described;
    std::string name;
    if (Error error = describe(attribute, described, name)) {
        return error;
    }
    if (Error error = check_node(node)) {
        return error;
    }
    bool first = true;
    for (const std::uint32_t row : users.rows) {
        Value seen;
        if (Error error = value_of_row(attribute, row, node, seen)) {
            return error;
        }
        const bool worse =
            described.more_is_better ? seen.value < value.value : seen.value > value.value;
        if (first || worse) {
            value = seen;
        }
        first = false;
        if (!described.by_initiator) {
            break;
        }
    }
    return {};
}

std::uint64_t Machine::cache_bytes(std::uint32_t node) const {
    std::uint64_t bytes = 0;
    warren_object above = warren_object_parent(
        topology_, warren_topology_by_os_index(topology_, WARREN_OBJECT_NUMA_NODE, node));
    while (warren_object_type(topology_, above) == WARREN_OBJECT_MEMORY_CACHE) {
        warren_cache cache{};
        if (warren_object_cache(topology_, above, &cache) == WARREN_TOPOLOGY_SUCCESS) {
            bytes += cache.bytes;
        }
        above = warren_object_parent(topology_, above);
    }
    return bytes;
}

bool Machine::is_allowed(std::uint32_t node) const {
    return allowed_.empty() || has_bit(allowed_, node);
}

// The memories that the criteria allow, in the topology's order by nearness.
std::vector<Candidate> Machine::candidates_of(const Criteria& criteria, const Users& users) const {
    std::vector<Candidate> candidates;
    for (std::uint32_t index = 0; index < nodes_.size(); ++index) {
        const std::uint32_t node = warren_topology_best_target(topology_, WARREN_ATTRIBUTE_LOCALITY,
                                                               users.rows.front(), index);
        if (node == WARREN_NO_INDEX || !is_allowed(node)) {
            continue;
        }
        const Candidate candidate{node, relation(users, node), index};
        if ((criteria.targets >> static_cast<unsigned>(candidate.relation) & 1U) != 0) {
            candidates.push_back(candidate);
        }
    }
    return candidates;
}

// An attribute's values of these memories; one of them has to be known.
Error Machine::values_of(int attribute, const Attribute& described, const Criteria& criteria,
                         const Users& users, const std::vector<Candidate>& candidates,
                         std::vector<std::uint64_t>& column) const {
    bool known = false;
    for (const Candidate& candidate : candidates) {
        Value seen{no_value, 0};
        Error error = attribute == WARREN_MEM_AVAILABLE && this_node_
                          ? read_available("", candidate.node,
                                           criteria.reserved ? criteria.page_bytes : 0, seen.value)
                          : value(attribute, users, candidate.node, seen);
        known = known || !error;
        column.push_back(error ? no_value : seen.value);
        error.drop();
    }
    if (!known) {
        return fail(WARREN_MEM_ERR_NO_VALUE,
                    "no memory that the criteria '%s' allow has a known %.*s",
                    criteria.text().c_str(), static_cast<int>(described.name.size()),
                    described.name.data());
    }
    return {};
}

// A column for each attribute that the criteria name, and for what decides among equals.
Error Machine::columns_of(const Criteria& criteria, const Users& users,
                          const std::vector<Candidate>& candidates,
                          std::vector<std::vector<std::uint64_t>>& values,
                          std::vector<Column>& columns) const {
    double performance = -1; // the widest tolerance of those terms; -1: there is none
    for (const Term& term : criteria.terms) {
        int attribute = term.attribute;
        if (attribute < 0) {
            if (Error error = find(term.name, attribute)) {
                return error;
            }
        }
        Attribute described;
        std::string name;
        if (Error error = describe(attribute, described, name)) {
            return error;
        }
        std::vector<std::uint64_t>& column = values.emplace_back();
        if (Error error = values_of(attribute, described, criteria, users, candidates, column)) {
            return error;
        }
        const double tolerance =
            term.tolerance >= 0 ? term.tolerance : default_tolerance(described);
        if (described.unit == Unit::mebibytes_per_second || described.unit == Unit::nanoseconds) {
            performance = std::max(performance, tolerance);
        }
        columns.push_back({described.more_is_better, tolerance, {}});
    }
    if (performance >= 0) { // and what the values don't say decides among equals
        std::vector<std::uint64_t>& column = values.emplace_back();
        for (const Candidate& candidate : candidates) {
            column.push_back(cache_bytes(candidate.node));
        }
        columns.push_back({true, performance, {}});
    }
    if (columns.empty()) { // the nearest memory is best
        std::vector<std::uint64_t>& column = values.emplace_back();
        for (const Candidate& candidate : candidates) {
            column.push_back(candidate.distance);
        }
        columns.push_back({false, 0, {}});
    }
    for (std::size_t column = 0; column < columns.size(); ++column) {
        columns[column].values = values[column];
    }
    return {};
}

Error Machine::ordering(const Criteria& criteria, std::vector<Target>& targets) const {
    Users users;
    if (Error error = resolve(criteria.initiator, users)) {
        return error;
    }
    const std::vector<Candidate> candidates = candidates_of(criteria, users);
    if (candidates.empty()) {
        return fail(WARREN_MEM_ERR_NO_TARGET,
                    "no memory is as the criteria '%s' demand: of %zu, all are elsewhere or not "
                    "allowed to this process",
                    criteria.text().c_str(), nodes_.size());
    }
    std::vector<std::vector<std::uint64_t>> values;
    std::vector<Column> columns;
    if (Error error = columns_of(criteria, users, candidates, values, columns)) {
        return error;
    }
    targets.clear();
    for (const Placed& placed : order(candidates, columns)) {
        const Candidate& candidate = candidates[placed.candidate];
        targets.push_back({candidate.node, placed.tier, candidate.relation});
    }
    return {};
}

Error Machine::initiators(int attribute, std::uint32_t node, std::vector<Seen>& seen) const {
    seen.clear();
    Attribute described;
    std::string name;
    if (Error error = describe(attribute, described, name)) {
        return error;
    }
    if (Error error = check_node(node)) {
        return error;
    }
    if (!described.by_initiator) {
        return fail(WARREN_MEM_ERR_ARG, "the %.*s of memory does not depend on an initiator",
                    static_cast<int>(described.name.size()), described.name.data());
    }
    for (std::uint32_t row = 0; row < warren_topology_initiators(topology_); ++row) {
        Seen found{row, {}};
        if (Error error = value_of_row(attribute, row, node, found.value)) {
            error.drop();
            continue;
        }
        seen.push_back(found);
    }
    std::stable_sort(seen.begin(), seen.end(), [&](const Seen& one, const Seen& other) {
        return described.more_is_better ? one.value.value > other.value.value
                                        : one.value.value < other.value.value;
    });
    return {};
}

} // namespace warren::memory
