// Encoder: the sections of a topology image while they grow; encode() (encode.hpp) uses it once.
// encode.cpp adds the objects to the sections; encode_sections.cpp adds the rest and makes the
// image.
// Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "topology/common_ancestors.hpp"
#include "topology/encode.hpp"

namespace warren::topology {

// Indices that are known to fit, and none.
inline std::uint16_t narrow(std::size_t index) {
    return static_cast<std::uint16_t>(index);
}

// The sections while they grow.
class Encoder {
  public:
    explicit Encoder(const Description& description) : description_(description) {}

    Error encode(std::vector<std::byte>& image);

  private:
    Error check_limits() const;
    Error add_objects();
    Error add_object(std::uint32_t number, const Level& level, std::size_t level_index);
    void add_sets(std::uint32_t number, const Object& object);
    void add_object_infos(std::uint32_t number, const Object& object);
    Error add_children(std::uint32_t number);
    void add_nearest();
    Error add_indices();
    void add_row_indices();
    Error add_names();
    void add_infos(std::uint32_t object, const std::vector<Info>& infos);
    void add_info(std::uint32_t object, const std::string& name, const std::string& value);
    void add_distances();
    void add_cpu_kinds();
    void add_attributes();
    void add_attribute(const AttributeMatrix& matrix);
    void place_all(std::vector<std::byte>& counts, std::vector<std::byte>& sections) const;
    Error write(std::vector<std::byte>& image) const;

    std::uint32_t string(const std::string& text);
    std::uint32_t set(const Bits& bits);
    std::uint32_t words(const std::uint64_t* first, std::size_t count);
    std::uint16_t details(const Words& words);
    bool is_predefined(std::size_t attribute) const {
        return attribute < std::size(predefined_attributes) &&
               description_.matrices[attribute].name == predefined_attributes[attribute];
    }

    const Description& description_;
    std::uint32_t tree_objects_ = 0;
    CommonAncestors ancestors_;

    std::vector<std::uint32_t> nested_; // within how many objects beside the tree, itself counted
    std::vector<std::uint8_t> level_of_;
    std::vector<std::uint8_t> flags_;
    std::vector<std::uint16_t> arity_;
    std::vector<std::uint16_t> details_of_;
    std::vector<std::uint16_t> nodeset_of_;
    std::vector<std::uint16_t> os_index_;
    std::vector<std::uint16_t> parent_;
    std::vector<std::uint16_t> first_child_;
    std::vector<std::uint16_t> cpuset_of_;
    std::vector<std::uint8_t> nearest_;
    std::vector<LevelRecord> levels_;
    std::vector<OtherChildren> other_children_;
    std::vector<CompleteSets> complete_sets_;
    std::vector<InfoRecord> infos_;
    std::vector<std::uint16_t> children_;
    std::vector<std::uint64_t> details_;
    std::vector<SetRecord> sets_;
    std::vector<std::uint64_t> words_;
    std::vector<char> strings_;
    std::vector<std::uint16_t> pu_by_os_;
    std::vector<std::int16_t> node_by_os_;
    std::vector<std::int16_t> row_by_os_;
    std::vector<DistancesRecord> distances_;
    std::vector<std::uint32_t> distance_objects_;
    std::vector<std::uint8_t> distance_bytes_;
    std::vector<CpuKindRecord> cpu_kinds_;
    std::vector<InitiatorRecord> initiators_;
    std::vector<AttributeRecord> attributes_;
    std::vector<std::uint8_t> cells_;
    std::vector<std::uint8_t> orders_;
    std::vector<std::uint8_t> values_;
    std::vector<WideOsIndex> wide_os_indices_;
    std::vector<std::uint16_t> allowed_;

    // Entries that have been written, with their indices, so that equal ones are written once.
    std::unordered_map<std::string, std::uint32_t> string_index_;
    std::map<std::vector<std::uint64_t>, std::uint32_t> set_index_;
    std::map<std::vector<std::uint64_t>, std::uint32_t> word_index_;
    std::map<Words, std::uint16_t> detail_index_;
    std::map<std::vector<std::uint16_t>, std::uint16_t> order_index_;
    std::unordered_map<std::string, std::uint32_t> cell_index_;
    std::unordered_map<std::string, std::uint32_t> value_index_;
};

} // namespace warren::topology
