// Damaged images: every one is refused, or can be read to its last corner without leaving it.
//
// Images lie right before a page that can't be touched, and their checksums are made right again,
// so that the checks behind it have to find the damage. With a number of seconds as argument the
// test goes on that long with other random numbers, and with images of the sources behind it too.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "topology/checksum.hpp"
#include "topology/handle.hpp"
#include "topology/process_share.hpp"

namespace warren::topology {

namespace {

int seconds_more = 0;
std::vector<std::string> sources_more;

// Memory of which the last byte is the last before the forbidden page.
class Guarded {
  public:
    explicit Guarded(std::size_t largest) {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        size_ = (largest + page - 1) / page * page;
        void* mapped =
            mmap(nullptr, size_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        begin_ = static_cast<std::byte*>(mapped);
        mprotect(begin_ + size_, page, PROT_NONE);
        whole_ = size_ + page;
    }
    ~Guarded() { munmap(begin_, whole_); }
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;

    std::span<const std::byte> put(const std::vector<std::byte>& bytes) {
        std::byte* place = begin_ + size_ - bytes.size();
        std::copy(bytes.begin(), bytes.end(), place);
        return {place, bytes.size()};
    }

  private:
    std::byte* begin_;
    std::size_t size_;
    std::size_t whole_;
};

std::vector<std::byte> image_of(const char* source) {
    warren_topology* topology = nullptr;
    warren_topology_report report;
    EXPECT_EQ(warren_topology_open(source, &topology, &report), 0) << report.problem;
    std::size_t bytes = 0;
    const auto* image = static_cast<const std::byte*>(warren_topology_image(topology, &bytes));
    std::vector<std::byte> copy(image, image + bytes);
    warren_topology_close(topology);
    return copy;
}

void mend_checksum(std::vector<std::byte>& image) {
    if (image.size() >= sizeof(Header) && image.size() % 8 == 0) {
        const std::uint64_t sum =
            checksum(image.data() + checksum_end, image.size() - checksum_end);
        std::memcpy(image.data() + offsetof(Header, checksum), &sum, sizeof sum);
    }
}

std::size_t use_set(const warren_set& set) {
    std::size_t sum = warren_set_count(set);
    for (std::uint32_t member = warren_set_next(set, 0); member != WARREN_NO_INDEX;
         member = warren_set_next(set, member + 1)) {
        sum += member;
    }
    return sum;
}

std::size_t use_text(const char* text) {
    return text != nullptr ? std::strlen(text) : 0;
}

std::size_t use_object(const warren_topology* t, warren_object object) {
    std::size_t sum = static_cast<std::size_t>(warren_object_type(t, object)) +
                      warren_object_os_index(t, object) + warren_object_logical_index(t, object) +
                      warren_object_memory_bytes(t, object);
    sum += use_set(warren_object_cpus(t, object)) + use_set(warren_object_nodes(t, object));
    sum += use_set(warren_object_complete_cpus(t, object));
    sum += use_set(warren_object_complete_nodes(t, object));
    for (int kind = WARREN_CHILD_TREE; kind <= WARREN_CHILD_MISC; ++kind) {
        const std::uint32_t children = warren_object_child_count(t, object, kind);
        EXPECT_LE(children, warren_topology_objects(t));
        for (std::uint32_t index = 0; index < children; ++index) {
            const warren_object child = warren_object_child(t, object, kind, index);
            EXPECT_LT(child, warren_topology_objects(t));
        }
    }
    sum += warren_object_ancestor(t, object, WARREN_OBJECT_GROUP);
    const std::uint32_t objects = warren_topology_objects(t);
    constexpr std::uint32_t few = 20;
    for (std::uint32_t other = 0; other < (objects <= few ? objects : 1); ++other) {
        const warren_object asked = objects <= few ? other : (object * 7 + 3) % objects;
        EXPECT_LT(warren_object_common_ancestor(t, object, asked), objects);
    }
    sum += use_text(warren_object_name(t, object)) + use_text(warren_object_subtype(t, object));
    const std::uint32_t infos = warren_object_info_count(t, object);
    for (std::uint32_t index = 0; index < infos; ++index) {
        const char* name = nullptr;
        const char* value = nullptr;
        warren_object_info_at(t, object, index, &name, &value);
        sum += use_text(name) + use_text(value) + use_text(warren_object_info(t, object, name));
    }
    warren_cache cache;
    warren_bridge bridge;
    warren_pci_device device;
    warren_group group;
    sum += static_cast<std::size_t>(warren_object_cache(t, object, &cache));
    sum += static_cast<std::size_t>(warren_object_bridge(t, object, &bridge));
    sum += static_cast<std::size_t>(warren_object_pci_device(t, object, &device));
    sum += static_cast<std::size_t>(warren_object_group(t, object, &group));
    sum += static_cast<std::size_t>(warren_object_device_kind(t, object));
    std::uint64_t bytes = 0;
    std::uint64_t pages = 0;
    for (std::uint32_t index = 0; index < warren_object_page_sizes(t, object); ++index) {
        warren_object_page_size(t, object, index, &bytes, &pages);
        sum += bytes + pages;
    }
    const warren_object memory = warren_topology_nearest_memory(t, object);
    if (memory != WARREN_NO_OBJECT) {
        EXPECT_EQ(warren_object_type(t, memory), WARREN_OBJECT_NUMA_NODE);
    }
    sum += warren_topology_nearest_device(t, object, WARREN_DEVICE_NETWORK, 2);
    sum += warren_topology_initiator_of_object(t, object);
    sum += warren_topology_covering(t, warren_object_cpus(t, object));
    return sum;
}

std::size_t use_matrices(const warren_topology* t) {
    std::size_t sum = 0;
    for (std::uint32_t matrix = 0; matrix < warren_topology_distances_count(t); ++matrix) {
        warren_distances distances{};
        warren_topology_distances(t, matrix, &distances);
        sum += use_text(distances.name);
        std::uint64_t value = 0;
        for (std::uint32_t one = 0; one < distances.count; ++one) {
            EXPECT_LT(distances.objects[one], warren_topology_objects(t));
            for (std::uint32_t other = 0; other < distances.count; ++other) {
                warren_topology_distance(t, matrix, one, other, &value);
                sum += value;
            }
        }
    }
    for (std::uint32_t kind = 0; kind < warren_topology_cpu_kinds(t); ++kind) {
        warren_set set{};
        warren_topology_cpu_kind(t, kind, &set, nullptr);
        sum += use_set(set);
        for (std::uint32_t at = 0; at < warren_topology_cpu_kind_info_count(t, kind); ++at) {
            const char* name = nullptr;
            const char* value = nullptr;
            warren_topology_cpu_kind_info(t, kind, at, &name, &value);
            sum += use_text(name) + use_text(value);
        }
    }
    for (std::uint32_t row = 0; row < warren_topology_initiators(t); ++row) {
        warren_set set{};
        warren_topology_initiator(t, row, &set, nullptr);
        sum += use_set(set);
        for (std::uint32_t attribute = 0; attribute < warren_topology_attributes(t); ++attribute) {
            sum += use_text(warren_topology_attribute_name(t, attribute));
            const std::uint32_t nodes = warren_topology_count(t, WARREN_OBJECT_NUMA_NODE);
            for (std::uint32_t place = 0; place < nodes; ++place) {
                std::uint64_t value = 0;
                const std::uint32_t node = warren_topology_best_target(t, attribute, row, place);
                warren_topology_value(t, attribute, row, node, &value, nullptr);
                warren_topology_value(t, attribute, row, place, &value, nullptr);
                sum += value;
            }
        }
    }
    return sum;
}

std::size_t use_all(const TopologyView& view) {
    const warren_topology topology{view, ImageMemory{}, 0, words_of(view.allowed_cpus()),
                                   words_of(view.allowed_nodes())};
    std::size_t sum = 0;
    for (warren_object object = 0; object < warren_topology_objects(&topology); ++object) {
        sum += use_object(&topology, object);
    }
    for (int type = 0; type < WARREN_OBJECT_TYPES; ++type) {
        std::uint32_t steps = 0;
        for (warren_object object = warren_topology_next(&topology, type, WARREN_NO_OBJECT);
             object != WARREN_NO_OBJECT; object = warren_topology_next(&topology, type, object)) {
            EXPECT_LT(object, warren_topology_objects(&topology));
            sum += warren_topology_by_os_index(&topology, type, steps++);
        }
        EXPECT_EQ(steps, warren_topology_count(&topology, type));
    }
    warren_filter filter{};
    EXPECT_EQ(warren_filter_make(&topology, 0x5f5f5, WARREN_ALL_TYPES & 0xf0f0, &filter), 0);
    for (int kind = WARREN_CHILD_TREE; kind <= WARREN_CHILD_MISC; ++kind) {
        std::uint32_t steps = 0;
        for (warren_object child =
                 warren_filter_next_child(&topology, &filter, 0, kind, WARREN_NO_OBJECT);
             child != WARREN_NO_OBJECT;
             child = warren_filter_next_child(&topology, &filter, 0, kind, child)) {
            EXPECT_LE(++steps, warren_topology_objects(&topology));
            sum += warren_filter_parent(&topology, &filter, child);
        }
    }
    sum += warren_object_info_count(&topology, WARREN_NO_OBJECT);
    return sum + use_matrices(&topology);
}

class Fuzz : public testing::Test {
  protected:
    // False: refused.
    bool survives(const std::vector<std::byte>& image) {
        TopologyView view;
        const std::span<const std::byte> placed = guarded_.put(image);
        Error error = TopologyView::check(placed, view);
        if (error) {
            EXPECT_EQ(error.error_class(), WARREN_TOPOLOGY_ERR_DAMAGED);
            error.drop();
            return false;
        }
        used_ += use_all(view);
        return true;
    }

    std::string reason(const std::vector<std::byte>& image) {
        TopologyView view;
        Error error = TopologyView::check(guarded_.put(image), view);
        ErrorRecord* record = error.take();
        std::string text = record != nullptr ? record->text : "";
        delete record;
        return text;
    }

    Guarded guarded_{std::size_t{1} << 18};
    std::size_t used_ = 0;
};

constexpr const char* sources[] = {
    "synthetic:package:2 [numa] l3:2 core:2 pu:2",
    "synthetic:pu:1",
    "synthetic:package:2 [numa(memory=1GB)] group:2 [numa] core:3 pu:1",
    "synthetic:package:3 [numa] core:5 l1:1 pu:3",
    // Trees of 5, 11 and 15 objects, which have pairs.
    "synthetic:core:2 pu:1",
    "synthetic:package:2 [numa] core:2 pu:1",
    "synthetic:package:2 [numa] [numa] core:3 pu:1",
};

Header header_of(const std::vector<std::byte>& image) {
    Header header;
    std::memcpy(&header, image.data(), sizeof header);
    return header;
}

void set_header(std::vector<std::byte>& image, const Header& header) {
    std::memcpy(image.data(), &header, sizeof header);
    mend_checksum(image);
}

TEST_F(Fuzz, finds_each_flipped_bit_by_the_checksum) {
    std::vector<std::byte> image = image_of(sources[1]);
    ASSERT_TRUE(survives(image));
    for (std::size_t bit = 0; bit < image.size() * 8; ++bit) {
        image[bit / 8] ^= std::byte{1} << bit % 8;
        ASSERT_FALSE(survives(image)) << "bit " << bit;
        image[bit / 8] ^= std::byte{1} << bit % 8;
    }
}

TEST_F(Fuzz, finds_children_that_are_listed_twice) {
    std::vector<std::byte> image = image_of("synthetic:package:2 [numa] [numa] core:2 pu:2");
    TopologyView view;
    ASSERT_FALSE(TopologyView::check(guarded_.put(image), view));
    const auto first = static_cast<std::uint16_t>(view.child(1, WARREN_CHILD_MEMORY, 0));
    ASSERT_EQ(view.child(1, WARREN_CHILD_MEMORY, 1), first + 1U);
    // The lists of both packages, one behind the other.
    std::uint16_t lists[4];
    std::iota(std::begin(lists), std::end(lists), first);
    const auto bytes = std::as_bytes(std::span(lists));
    const auto found = std::search(image.begin(), image.end(), bytes.begin(), bytes.end());
    ASSERT_NE(found, image.end());
    ASSERT_EQ(std::search(found + 1, image.end(), bytes.begin(), bytes.end()), image.end());
    found[2] = found[0];
    mend_checksum(image);
    EXPECT_FALSE(survives(image));
}

TEST_F(Fuzz, finds_images_that_are_too_short_or_too_long) {
    const std::vector<std::byte> image = image_of(sources[0]);
    for (std::size_t size = 0; size < image.size(); ++size) {
        std::vector<std::byte> part(image.begin(),
                                    image.begin() + static_cast<std::ptrdiff_t>(size));
        ASSERT_FALSE(survives(part));
        if (size >= sizeof(Header)) { // and says that it is whole
            const auto bytes = static_cast<std::uint32_t>(size);
            std::memcpy(part.data() + offsetof(Header, bytes), &bytes, sizeof bytes);
            mend_checksum(part);
            ASSERT_FALSE(survives(part)) << size;
        }
    }
    std::vector<std::byte> longer = image;
    longer.resize(longer.size() + 64);
    mend_checksum(longer);
    EXPECT_FALSE(survives(longer));
}

TEST_F(Fuzz, finds_other_versions_and_impossible_counts) {
    const std::vector<std::byte> image = image_of(sources[0]);
    for (std::size_t field = 0; field < sizeof(Header); field += 4) {
        for (const std::uint32_t value :
             {0U, 1U, 0x7fffffffU, 0x80000000U, 0xffffffffU, 0xfffffff8U}) {
            std::vector<std::byte> other = image;
            std::memcpy(other.data() + field, &value, sizeof value);
            if (field < offsetof(Header, checksum) || field >= checksum_end) {
                mend_checksum(other);
            }
            const bool is_same = std::equal(other.begin(), other.end(), image.begin());
            const bool survived = survives(other);
            if (!is_same) {
                EXPECT_FALSE(survived) << "field " << field << " value " << value;
            }
        }
    }
}

TEST_F(Fuzz, refuses_each_other_byte_of_the_header) {
    int with_pairs = 0;
    for (const char* source : sources) {
        const std::vector<std::byte> image = image_of(source);
        ASSERT_TRUE(survives(image));
        with_pairs += header_of(image).has_pairs;
        for (std::size_t at = 0; at < sizeof(Header); ++at) {
            for (int change = 1; change < 256; ++change) {
                std::vector<std::byte> other = image;
                other[at] ^= static_cast<std::byte>(change);
                if (at < offsetof(Header, checksum) || at >= checksum_end) {
                    mend_checksum(other);
                }
                ASSERT_FALSE(survives(other)) << source << ": byte " << at << ", bits " << change;
            }
        }
    }
    EXPECT_EQ(with_pairs, 4);
}

// By what the header says, before it is asked what would fit behind it.
TEST_F(Fuzz, refuses_tables_of_common_ancestors_that_cannot_be) {
    const auto refusal = [this](const char* source, auto change) {
        std::vector<std::byte> image = image_of(source);
        Header header = header_of(image);
        change(header);
        set_header(image, header);
        return reason(image);
    };
    constexpr const char* with_pairs = "synthetic:package:2 [numa] core:2 pu:1";
    constexpr const char* with_places = "synthetic:package:2 [numa] l3:2 core:2 pu:2";
    constexpr const char* large = "synthetic:package:4 [numa] core:50 pu:1"; // 405 in the tree
    ASSERT_EQ(refusal(with_pairs, [](Header& its) { EXPECT_EQ(its.has_pairs, 1); }), "");
    ASSERT_EQ(refusal(with_places, [](Header& its) { EXPECT_LE(its.place_bits, max_place_bits); }),
              "");
    constexpr const char* counts = "the topology image is damaged: impossible counts";
    EXPECT_EQ(refusal(with_pairs, [](Header& its) { its.has_pairs = 2; }), counts);
    EXPECT_EQ(refusal(with_pairs, [](Header& its) { its.parting_kinds = 1; }), counts);
    EXPECT_EQ(refusal(with_places, [](Header& its) { its.has_pairs = 1; }), counts);
    EXPECT_EQ(refusal(with_places, [](Header& its) { its.parting_kinds = 0; }), counts);
    EXPECT_EQ(refusal(with_places, [](Header& its) { its.place_bits = max_place_bits + 1; }),
              counts);
    EXPECT_EQ(refusal(large,
                      [](Header& its) {
                          EXPECT_GT(its.tree_objects, max_paired_objects);
                          its.has_pairs = 1;
                          its.place_bits = no_places;
                          its.parting_kinds = 0;
                      }),
              counts);
}

TEST_F(Fuzz, says_why_an_image_is_refused) {
    const std::vector<std::byte> image = image_of(sources[0]);
    EXPECT_EQ(reason(image), "");
    const auto changed = [&image](std::size_t field, std::byte value) {
        std::vector<std::byte> other = image;
        other[field] = value;
        return other;
    };
    EXPECT_EQ(reason(changed(0, std::byte{'X'})), "this is no topology image");
    EXPECT_EQ(reason(changed(offsetof(Header, version), std::byte{4})),
              "the topology image has version 4, this library reads version 9");
    EXPECT_EQ(reason({image.begin(), image.end() - 8}),
              "the topology image is damaged: it is shorter or longer than it says");
    EXPECT_EQ(reason({image.begin(), image.begin() + 8}),
              "the topology image is damaged: it has an impossible size");
    EXPECT_EQ(reason(changed(image.size() / 2, image[image.size() / 2] ^ std::byte{4})),
              "the topology image is damaged: its checksum is wrong");
}

void damage(std::vector<std::byte>& image, std::mt19937& random) {
    const auto below = [&random](std::size_t limit) { return random() % limit; };
    const std::uint32_t interesting[] = {0,
                                         1,
                                         2,
                                         7,
                                         8,
                                         0xff,
                                         0x100,
                                         0xfffe,
                                         0xffff,
                                         0x10000,
                                         0x7fffffff,
                                         0x80000000,
                                         0xfffffffe,
                                         0xffffffff,
                                         static_cast<std::uint32_t>(image.size()),
                                         static_cast<std::uint32_t>(below(64))};
    for (std::size_t change = below(4) + 1; change > 0; --change) {
        const std::size_t at = checksum_end + below(image.size() - checksum_end);
        switch (below(4)) {
        case 0:
            image[at] ^= std::byte{1} << below(8);
            break;
        case 1:
            image[at] = static_cast<std::byte>(below(256));
            break;
        case 2: {
            const std::uint32_t value = interesting[below(std::size(interesting))];
            std::memcpy(image.data() + at / 4 * 4, &value, sizeof value);
            break;
        }
        default: { // something from elsewhere
            const std::size_t from = checksum_end + below(image.size() - checksum_end);
            std::memmove(image.data() + at / 4 * 4, image.data() + from / 4 * 4,
                         std::min<std::size_t>(4, image.size() - from / 4 * 4));
        }
        }
    }
    mend_checksum(image);
}

TEST_F(Fuzz, refuses_or_survives_damage_behind_a_right_checksum) {
    std::vector<std::vector<std::byte>> images;
    for (const char* source : sources) {
        images.push_back(image_of(source));
    }
    for (const std::string& source : sources_more) {
        images.push_back(image_of(source.c_str()));
    }
    constexpr unsigned rounds = 4000;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds_more);
    std::mt19937 random(seconds_more > 0 ? std::random_device{}() : 1); // NOLINT: repeatable
    unsigned survived = 0;
    unsigned tried = 0;
    do {
        for (unsigned round = 0; round < rounds; ++round, ++tried) {
            std::vector<std::byte> image = images[random() % images.size()];
            damage(image, random);
            survived += survives(image) ? 1 : 0;
            ASSERT_FALSE(HasFailure());
        }
    } while (std::chrono::steady_clock::now() < end);
    // Both happen: sizes of caches are anybody's guess, indices aren't.
    EXPECT_GT(survived, tried / 50);
    EXPECT_LT(survived, tried);
    std::printf("%u damaged images, %u of them refused\n", tried, tried - survived);
}

} // namespace

} // namespace warren::topology

int main(int argument_count, char** arguments) {
    testing::InitGoogleTest(&argument_count, arguments);
    if (argument_count > 1) {
        warren::topology::seconds_more = std::atoi(arguments[1]);
        warren::topology::sources_more.assign(arguments + 2, arguments + argument_count);
    }
    return RUN_ALL_TESTS();
}
