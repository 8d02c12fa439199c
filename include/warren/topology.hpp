// The node's topology, for C++: topology.h with owners, objects that know their topology, and
// ranges.
//
//     warren::Topology node;                                       // this node's
//     for (warren::Object core : node.objects(WARREN_OBJECT_CORE)) {
//         if (auto memory = core.nearest_memory()) { std::printf("%u\n", memory->os_index()); }
//     }
//
// A thin layer: nothing is allocated but by the constructors, and every call is one of
// topology.h's. An Object is a pointer and a number; it is good as long as its Topology. What a
// call does not find is std::nullopt. Sets are topology.h's, made iterable by warren::numbers(set).
// Thread rule: as in topology.h, any number of threads at once. Link with -lwarren.
#ifndef WARREN_TOPOLOGY_HPP
#define WARREN_TOPOLOGY_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "warren/topology.h"

namespace warren {

// Why a topology can't be had.
class TopologyError : public std::runtime_error {
  public:
    TopologyError(int its_code, const char* problem)
        : std::runtime_error(problem), code_(its_code) {}
    int code() const { return code_; } // WARREN_TOPOLOGY_ERR_…

  private:
    int code_;
};

// The numbers in a set, rising.
class Numbers {
  public:
    class Iterator {
      public:
        using value_type = std::uint32_t;
        using difference_type = std::ptrdiff_t;
        using iterator_category = std::input_iterator_tag;
        using pointer = const std::uint32_t*;
        using reference = std::uint32_t;

        Iterator(warren_set set, std::uint32_t number) : set_(set), number_(number) {}
        std::uint32_t operator*() const { return number_; }
        Iterator& operator++() {
            number_ = warren_set_next(set_, number_ + 1);
            return *this;
        }
        bool operator==(const Iterator& other) const { return number_ == other.number_; }
        bool operator!=(const Iterator& other) const { return number_ != other.number_; }

      private:
        warren_set set_;
        std::uint32_t number_;
    };

    explicit Numbers(warren_set set) : set_(set) {}
    Iterator begin() const { return {set_, warren_set_next(set_, 0)}; }
    Iterator end() const { return {set_, WARREN_NO_INDEX}; }

  private:
    warren_set set_;
};

inline Numbers numbers(warren_set set) {
    return Numbers(set);
}

class Object;

// Objects, each found from the one before or by its index.
template <typename At>
class ObjectRange {
  public:
    class Iterator {
      public:
        using value_type = Object;
        using difference_type = std::ptrdiff_t;
        using iterator_category = std::input_iterator_tag;
        using pointer = const Object*;
        using reference = Object;

        Iterator(const warren_topology* topology, At at, std::uint32_t index)
            : topology_(topology), at_(at), index_(index) {}
        Object operator*() const;
        Iterator& operator++() {
            ++index_;
            return *this;
        }
        Iterator operator++(int) {
            Iterator before = *this;
            ++index_;
            return before;
        }
        bool operator==(const Iterator& other) const { return index_ == other.index_; }
        bool operator!=(const Iterator& other) const { return index_ != other.index_; }

      private:
        // The range may be gone: objects(…).begin().
        const warren_topology* topology_;
        At at_;
        std::uint32_t index_;
    };

    ObjectRange(const warren_topology* topology, std::uint32_t count, At at)
        : topology_(topology), count_(count), at_(at) {}
    std::uint32_t size() const { return count_; }
    bool empty() const { return count_ == 0; }
    Object operator[](std::uint32_t index) const;
    Iterator begin() const { return {topology_, at_, 0}; }
    Iterator end() const { return {topology_, at_, count_}; }

  private:
    const warren_topology* topology_;
    std::uint32_t count_;
    At at_;
};

class Object {
  public:
    Object(const warren_topology* topology, warren_object number)
        : topology_(topology), number_(number) {}

    const warren_topology* topology() const { return topology_; }
    warren_object number() const { return number_; } // as topology.h has it

    int type() const { return warren_object_type(topology_, number_); } // WARREN_OBJECT_…
    const char* type_name() const { return warren_object_type_name(type()); }
    int depth() const { return warren_object_depth(topology_, number_); }
    std::uint32_t logical_index() const { return warren_object_logical_index(topology_, number_); }
    std::uint32_t os_index() const { return warren_object_os_index(topology_, number_); }
    // Null where there is none, as for the next ones.
    const char* name() const { return warren_object_name(topology_, number_); }
    const char* subtype() const { return warren_object_subtype(topology_, number_); }
    const char* info(const char* key) const { return warren_object_info(topology_, number_, key); }

    warren_set cpus() const { return warren_object_cpus(topology_, number_); }
    warren_set nodes() const { return warren_object_nodes(topology_, number_); }
    std::uint64_t memory_bytes() const { return warren_object_memory_bytes(topology_, number_); }

    std::optional<Object> parent() const { return made(warren_object_parent(topology_, number_)); }
    std::optional<Object> ancestor(int type) const {
        return made(warren_object_ancestor(topology_, number_, type));
    }
    std::optional<Object> common_ancestor(Object other) const {
        return made(warren_object_common_ancestor(topology_, number_, other.number_));
    }
    bool is_below(Object other) const {
        return warren_object_is_below(topology_, number_, other.number_) != 0;
    }
    std::optional<Object> nearest_memory() const {
        return made(warren_topology_nearest_memory(topology_, number_));
    }
    // `kind`: WARREN_CHILD_…
    auto children(int kind = WARREN_CHILD_TREE) const {
        struct Child {
            warren_object parent;
            int kind;
            warren_object operator()(const warren_topology* topology, std::uint32_t index) const {
                return warren_object_child(topology, parent, kind, index);
            }
        };
        return ObjectRange<Child>(topology_, warren_object_child_count(topology_, number_, kind),
                                  Child{number_, kind});
    }

    bool operator==(const Object& other) const {
        return topology_ == other.topology_ && number_ == other.number_;
    }
    bool operator!=(const Object& other) const { return !(*this == other); }

  private:
    std::optional<Object> made(warren_object number) const {
        return number != WARREN_NO_OBJECT ? std::optional<Object>(Object(topology_, number))
                                          : std::nullopt;
    }

    const warren_topology* topology_;
    warren_object number_;
};

template <typename At>
Object ObjectRange<At>::operator[](std::uint32_t index) const {
    return {topology_, at_(topology_, index)};
}

template <typename At>
Object ObjectRange<At>::Iterator::operator*() const {
    return {topology_, at_(topology_, index_)};
}

class Topology {
  public:
    // This node's, shared with the other ranks of the job where there are some.
    Topology() {
        made([](auto** made, auto* report) { return warren_topology_load(made, report); });
    }
    // Another one, in the words of warren_topology_open.
    explicit Topology(const std::string& source) {
        made([&](auto** made, auto* report) {
            return warren_topology_open(source.c_str(), made, report);
        });
    }

    const warren_topology* get() const { return owned_.get(); }
    int way() const { return warren_topology_way(get()); } // WARREN_TOPOLOGY_…
    // The parts that were left out of the topology, "" if none were.
    const std::string& note() const { return note_; }

    std::uint32_t count(int type) const { return warren_topology_count(get(), type); }
    auto objects(int type) const {
        struct OfType {
            int type;
            warren_object operator()(const warren_topology* topology, std::uint32_t index) const {
                return warren_topology_object(topology, type, index);
            }
        };
        return ObjectRange<OfType>(get(), count(type), OfType{type});
    }
    Object machine() const { return {get(), 0}; }
    std::optional<Object> by_os_index(int type, std::uint32_t os_index) const {
        return found(warren_topology_by_os_index(get(), type, os_index));
    }
    // The smallest object that has all these processors.
    std::optional<Object> covering(warren_set cpus) const {
        return found(warren_topology_covering(get(), cpus));
    }
    std::optional<Object> nearest_memory_of_cpu(std::uint32_t cpu) const {
        return found(warren_topology_nearest_memory_of_cpu(get(), cpu));
    }
    warren_set available_cpus() const { return warren_topology_available_cpus(get()); }
    warren_set available_nodes() const { return warren_topology_available_nodes(get()); }

    // An attribute of memory (WARREN_ATTRIBUTE_…) of the node with this OS index, from a processor.
    struct Value {
        std::uint64_t value;
        int origin; // WARREN_ORIGIN_…
    };
    std::optional<Value> value(std::uint32_t attribute, std::uint32_t cpu,
                               std::uint32_t node) const {
        Value seen{};
        return warren_topology_value(get(), attribute, warren_topology_initiator_of_cpu(get(), cpu),
                                     node, &seen.value, &seen.origin) == WARREN_TOPOLOGY_SUCCESS
                   ? std::optional<Value>(seen)
                   : std::nullopt;
    }

  private:
    struct Close {
        void operator()(warren_topology* topology) const { warren_topology_close(topology); }
    };

    template <typename Open>
    void made(const Open& open) {
        warren_topology* topology = nullptr;
        warren_topology_report report{};
        if (const int error = open(&topology, &report)) {
            throw TopologyError(error, report.problem);
        }
        owned_.reset(topology);
        note_ = report.problem;
    }
    std::optional<Object> found(warren_object number) const {
        return number != WARREN_NO_OBJECT ? std::optional<Object>(Object(get(), number))
                                          : std::nullopt;
    }

    std::unique_ptr<warren_topology, Close> owned_;
    std::string note_;
};

} // namespace warren

#endif
