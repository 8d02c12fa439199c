// Machine: a machine's memories with their attributes, as criteria are applied to them.
//
// The type behind warren_memory. It stands on a topology image, which has the values for all pairs
// of initiator and target with their origins, and adds what an image can't have: what is available
// now, attributes that the program registers, and orderings by several attributes.
//
// Thread rule: any number of threads at once. Registered attributes are behind a lock; what is
// predefined is read from the image without one.
// Invariant: `revision` grows with every change of registered attributes, so that what was computed
// with them can be kept until then.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "memory/attributes/attribute.hpp"
#include "memory/attributes/criteria.hpp"
#include "memory/attributes/ordering.hpp"
#include "warren/topology.h"

namespace warren::memory {

struct Target {
    std::uint32_t node = 0; // OS index
    std::uint32_t tier = 0; // equal when equal under the criteria; from 0, without gaps
    Relation relation = Relation::local;

    bool operator==(const Target&) const = default;
};

struct Value {
    std::uint64_t value = 0;
    int origin = 0; // WARREN_ORIGIN_… or WARREN_MEM_ORIGIN_…
};

// Who uses the memory, in the terms of a machine.
struct Users {
    std::vector<std::uint32_t> rows;       // initiators of the topology, at least one
    std::vector<std::uint64_t> processors; // bitmap
};

class Machine {
  public:
    // The topology must live as long; `owned`: it is closed with the machine.
    Machine(const warren_topology* topology, bool owned);
    ~Machine();
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    // This process's, made at the first call, which may take the time of a discovery, and never
    // destroyed. Fails again, without trying, when it failed. Of another machine where the launcher
    // was told so.
    static Error here(Machine*& machine);

    const warren_topology* topology() const { return topology_; }
    // Whether it is the machine that this process runs on: what is there can be had.
    bool is_this_node() const { return this_node_; }
    // OS indices of all memories, in the topology's order.
    const std::vector<std::uint32_t>& nodes() const { return nodes_; }
    // Counts changes of all machines of the process, usually one, so that allocations ask without a
    // pointer.
    static std::uint64_t revision() { return changes.load(std::memory_order_acquire); }

    Error resolve(const Initiator& initiator, Users& users) const;
    Relation relation(const Users& users, std::uint32_t node) const;

    // The number of an attribute by its name, also of registered ones and of others in the
    // topology.
    Error find(std::string_view name, int& attribute) const;
    // `name` is only set for attributes that are not predefined, and belongs to the caller.
    Error describe(int attribute, Attribute& described, std::string& name) const;
    Error register_attribute(std::string_view name, unsigned flags, int& attribute);
    Error set_value(int attribute, const Initiator& initiator, std::uint32_t node,
                    std::uint64_t value);

    // Seen from several initiators: the worst.
    Error value(int attribute, const Users& users, std::uint32_t node, Value& value) const;
    // The targets that the criteria allow, the best first; at least one.
    Error ordering(const Criteria& criteria, std::vector<Target>& targets) const;

    struct Seen {
        std::uint32_t row = 0;
        Value value;
    };
    // From where a memory has a value, the best first.
    Error initiators(int attribute, std::uint32_t node, std::vector<Seen>& seen) const;

  private:
    struct Registered {
        std::string name;
        unsigned flags = 0;
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> values; // row, node
    };

    Error check_node(std::uint32_t node) const;
    Error add_processors(warren_set set, Users& users) const;
    std::vector<Candidate> candidates_of(const Criteria& criteria, const Users& users) const;
    Error values_of(int attribute, const Attribute& described, const Criteria& criteria,
                    const Users& users, const std::vector<Candidate>& candidates,
                    std::vector<std::uint64_t>& column) const;
    Error columns_of(const Criteria& criteria, const Users& users,
                     const std::vector<Candidate>& candidates,
                     std::vector<std::vector<std::uint64_t>>& values,
                     std::vector<Column>& columns) const;
    Error value_of_row(int attribute, std::uint32_t row, std::uint32_t node, Value& value) const;
    bool is_allowed(std::uint32_t node) const;
    std::uint64_t cache_bytes(std::uint32_t node) const; // of memory-side caches before it
    std::uint32_t others_of_topology() const;

    const warren_topology* topology_;
    bool owned_;
    bool this_node_ = false;
    std::vector<std::uint32_t> nodes_;
    std::vector<std::uint64_t> allowed_;                 // bitmap of nodes; empty: all
    static constinit std::atomic<std::uint64_t> changes; // of registered attributes, from 1
    mutable std::shared_mutex lock_;                     // of registered_
    std::vector<Registered> registered_;
};

// Free memory of a node, with what the kernel gives up at once (clean copies of files), in bytes,
// as far as the process's control group allows it; or, if not 0, what is free in the system's
// reserve of pages of that size. `root` is "" but in tests.
Error read_available(const std::string& root, std::uint32_t node, std::size_t reserved_page_bytes,
                     std::uint64_t& bytes);

inline Machine* of(warren_memory* memory) {
    return reinterpret_cast<Machine*>(memory);
}

} // namespace warren::memory
