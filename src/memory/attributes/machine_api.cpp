// The C API of a machine's memories (warren/memory.h).
#include <algorithm>
#include <cstring>
#include <new>

#include "memory/attributes/machine.hpp"
#include "memory/attributes/report.hpp"

#define WARREN_API extern "C" [[gnu::visibility("default")]]

using warren::Error;
using warren::fail;
using warren::memory::Criteria;
using warren::memory::Initiator;
using warren::memory::Machine;
using warren::memory::no_object;
using warren::memory::of;
using warren::memory::report;

namespace {

// The machine that a caller means.
Error meant(warren_memory* memory, Machine*& machine) {
    machine = of(memory);
    return machine != nullptr ? Error{} : Machine::here(machine);
}

Error users_of(const Machine& machine, const char* text, warren::memory::Users& users) {
    Initiator initiator;
    if (text != nullptr) {
        if (Error error = warren::memory::parse_initiator(text, initiator)) {
            return error;
        }
    }
    return machine.resolve(initiator, users);
}

Error ordering_of(warren_memory* memory, const warren_mem_criteria* criteria,
                  std::vector<warren::memory::Target>& targets) {
    Machine* machine = nullptr;
    if (Error error = meant(memory, machine)) {
        return error;
    }
    const Criteria nearest;
    return machine->ordering(criteria != nullptr ? of(criteria) : nearest, targets);
}

} // namespace

WARREN_API int warren_mem_open(const warren_topology* topology, warren_memory** memory) {
    if (topology == nullptr || memory == nullptr) {
        return no_object("warren_mem_open", topology == nullptr ? "topology" : "memory");
    }
    auto* machine = new (std::nothrow) Machine(topology, false);
    if (machine == nullptr) {
        return report(fail(WARREN_MEM_ERR_SYSTEM, "warren_mem_open: no memory"));
    }
    *memory = reinterpret_cast<warren_memory*>(machine);
    return WARREN_MEM_SUCCESS;
}

WARREN_API void warren_mem_close(warren_memory* memory) {
    delete of(memory);
}

WARREN_API int warren_mem_get_targets(warren_memory* memory, size_t capacity, unsigned* nodes,
                                      size_t* count) {
    if (count == nullptr || (nodes == nullptr && capacity != 0)) {
        return no_object("warren_mem_get_targets", count == nullptr ? "count" : "nodes");
    }
    Machine* machine = nullptr;
    if (Error error = meant(memory, machine)) {
        return report(error);
    }
    *count = machine->nodes().size();
    std::copy_n(machine->nodes().begin(), std::min(capacity, *count), nodes);
    return WARREN_MEM_SUCCESS;
}

WARREN_API int warren_mem_get_value(warren_memory* memory, int attribute, const char* initiator,
                                    unsigned node, uint64_t* value, int* origin) {
    if (value == nullptr) {
        return no_object("warren_mem_get_value", "value");
    }
    Machine* machine = nullptr;
    if (Error error = meant(memory, machine)) {
        return report(error);
    }
    warren::memory::Attribute described;
    std::string name;
    if (Error error = machine->describe(attribute, described, name)) {
        return report(error);
    }
    warren::memory::Users users;
    if (described.by_initiator) {
        if (Error error = users_of(*machine, initiator, users)) {
            return report(error);
        }
    } else {
        users.rows.assign(1, 0);
    }
    warren::memory::Value found;
    if (Error error = machine->value(attribute, users, node, found)) {
        return report(error);
    }
    *value = found.value;
    if (origin != nullptr) {
        *origin = found.origin;
    }
    return WARREN_MEM_SUCCESS;
}

WARREN_API int warren_mem_get_best_target(warren_memory* memory,
                                          const warren_mem_criteria* criteria, unsigned* node) {
    if (node == nullptr) {
        return no_object("warren_mem_get_best_target", "node");
    }
    std::vector<warren::memory::Target> targets;
    if (Error error = ordering_of(memory, criteria, targets)) {
        return report(error);
    }
    *node = targets.front().node;
    return WARREN_MEM_SUCCESS;
}

WARREN_API int warren_mem_get_ordering(warren_memory* memory, const warren_mem_criteria* criteria,
                                       size_t capacity, unsigned* nodes, unsigned* tiers,
                                       size_t* count) {
    if (count == nullptr || (nodes == nullptr && capacity != 0)) {
        return no_object("warren_mem_get_ordering", count == nullptr ? "count" : "nodes");
    }
    std::vector<warren::memory::Target> targets;
    if (Error error = ordering_of(memory, criteria, targets)) {
        return report(error);
    }
    *count = targets.size();
    for (std::size_t place = 0; place < std::min(capacity, targets.size()); ++place) {
        nodes[place] = targets[place].node;
        if (tiers != nullptr) {
            tiers[place] = targets[place].tier;
        }
    }
    return WARREN_MEM_SUCCESS;
}

WARREN_API int warren_mem_get_initiator(warren_memory* memory, int attribute, unsigned node,
                                        size_t index, void* mask, size_t mask_bytes,
                                        uint64_t* value, int* origin) {
    if (mask == nullptr && mask_bytes != 0) {
        return no_object("warren_mem_get_initiator", "mask");
    }
    Machine* machine = nullptr;
    if (Error error = meant(memory, machine)) {
        return report(error);
    }
    std::vector<Machine::Seen> seen;
    if (Error error = machine->initiators(attribute, node, seen)) {
        return report(error);
    }
    if (index >= seen.size()) {
        return report(fail(WARREN_MEM_ERR_NO_VALUE,
                           "warren_mem_get_initiator: memory %u has %zu initiators", node,
                           seen.size()));
    }
    const Machine::Seen& found = seen[index];
    warren_set cpus{};
    warren_object device = WARREN_NO_OBJECT;
    warren_topology_initiator(machine->topology(), found.row, &cpus, &device);
    auto* bytes = static_cast<unsigned char*>(mask);
    std::fill_n(bytes, mask_bytes, static_cast<unsigned char>(0));
    for (std::uint32_t cpu = warren_set_next(cpus, 0);
         cpu != WARREN_NO_INDEX && cpu / 8 < mask_bytes; cpu = warren_set_next(cpus, cpu + 1)) {
        bytes[cpu / 8] = static_cast<unsigned char>(bytes[cpu / 8] | 1U << (cpu % 8));
    }
    if (value != nullptr) {
        *value = found.value.value;
    }
    if (origin != nullptr) {
        *origin = found.value.origin;
    }
    return WARREN_MEM_SUCCESS;
}

WARREN_API int warren_mem_register_attribute(warren_memory* memory, const char* name,
                                             unsigned flags, int* attribute) {
    if (name == nullptr || attribute == nullptr) {
        return no_object("warren_mem_register_attribute", name == nullptr ? "name" : "attribute");
    }
    Machine* machine = nullptr;
    if (Error error = meant(memory, machine)) {
        return report(error);
    }
    return report(machine->register_attribute(name, flags, *attribute));
}

WARREN_API int warren_mem_set_value(warren_memory* memory, int attribute, const char* initiator,
                                    unsigned node, uint64_t value) {
    Machine* machine = nullptr;
    if (Error error = meant(memory, machine)) {
        return report(error);
    }
    Initiator from;
    if (initiator != nullptr) {
        if (Error error = warren::memory::parse_initiator(initiator, from)) {
            return report(error);
        }
    }
    return report(machine->set_value(attribute, from, node, value));
}

WARREN_API int warren_mem_find_attribute(warren_memory* memory, const char* name, int* attribute) {
    if (name == nullptr || attribute == nullptr) {
        return no_object("warren_mem_find_attribute", name == nullptr ? "name" : "attribute");
    }
    Machine* machine = nullptr;
    if (Error error = meant(memory, machine)) {
        return report(error);
    }
    return report(machine->find(name, *attribute));
}
