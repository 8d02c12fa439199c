// Damaged XML: hwloc refuses it, or what hwloc makes of it is refused or becomes an image that
// passes all checks. With a number of seconds as argument the test goes on that long with other
// random numbers, and with XML files behind it too.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "topology/discovery/describe.hpp"
#include "topology/discovery/hwloc_xml.hpp"
#include "topology/discovery/isolated.hpp"
#include "topology/encode.hpp"
#include "topology/handle.hpp"
#include "topology/mapping.hpp"
#include "topology/view.hpp"

namespace warren::discovery {

namespace {

int seconds_more = 0;
std::vector<std::string> files_more;

// Something of everything: two memories (one of them of no processor) with a cache in front and
// values, devices below bridges, distances of two kinds, kinds of processors, texts.
constexpr const char* everything = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x7" allowed_cpuset="0x3" nodeset="0x5" complete_nodeset="0x5" allowed_nodeset="0x5" gp_index="1">
    <info name="HostName" value="a &lt;b&gt;"/>
    <object type="NUMANode" os_index="2" cpuset="0x0" complete_cpuset="0x0" nodeset="0x4" complete_nodeset="0x4" gp_index="2" subtype="NVM" local_memory="8589934592"/>
    <object type="Package" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="3">
      <object type="MemCache" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="4" cache_size="1073741824" depth="1" cache_linesize="64" cache_associativity="1" cache_type="0">
        <object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="5" local_memory="4294967296">
          <page_type size="4096" count="1048576"/>
          <page_type size="2097152" count="8"/>
        </object>
      </object>
      <object type="Group" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="6" kind="0" subkind="0">
        <object type="L2Cache" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="7" cache_size="1048576" depth="2" cache_linesize="64" cache_associativity="16" cache_type="0">
          <object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="8">
            <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="9"/>
            <object type="Misc" name="a process" gp_index="10"/>
          </object>
        </object>
        <object type="Core" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1" complete_nodeset="0x1" gp_index="11">
          <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1" complete_nodeset="0x1" gp_index="12"/>
        </object>
      </object>
      <object type="Bridge" gp_index="13" bridge_type="0-1" depth="0" bridge_pci="0000:[00-02]">
        <object type="Bridge" gp_index="14" bridge_type="1-1" depth="1" bridge_pci="0000:[01-02]" pci_busid="0000:00:01.0" pci_type="0604 [8086:1901] [15d9:0001] 07" pci_link_speed="1.0">
          <object type="PCIDev" gp_index="15" pci_busid="0000:01:00.0" pci_type="0200 [8086:1521] [15d9:0001] 03" pci_link_speed="7.875000">
            <object type="OSDev" gp_index="16" name="eth0" subtype="Ethernet" osdev_type="2"/>
          </object>
        </object>
      </object>
    </object>
  </object>
  <distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os">
    <indexes length="4">0 2 </indexes>
    <u64values length="12">10 21 22 10 </u64values>
  </distances2>
  <distances2hetero nbobjs="2" kind="18" name="Other">
    <indexes length="14">PU:9 OSDev:16 </indexes>
    <u64values length="8">0 1 1 0 </u64values>
  </distances2hetero>
  <support name="discovery.pu"/>
  <memattr name="Bandwidth" flags="5">
    <memattr_value target_obj_type="NUMANode" target_obj_gp_index="5" value="90000" initiator_cpuset="0x3"/>
    <memattr_value target_obj_type="NUMANode" target_obj_gp_index="2" value="9000" initiator_obj_gp_index="16" initiator_obj_type="OSDev"/>
  </memattr>
  <memattr name="Endurance" flags="1">
    <memattr_value target_obj_type="NUMANode" target_obj_gp_index="2" value="7"/>
  </memattr>
  <cpukind cpuset="0x1" forced_efficiency="1"><info name="CoreType" value="Small"/></cpukind>
  <cpukind cpuset="0x2" forced_efficiency="2"/>
</topology>
)";

// The text as a file that has no name.
class MemoryFile {
  public:
    MemoryFile() : file_(memfd_create("xml", MFD_CLOEXEC)) {}
    ~MemoryFile() { close(file_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    std::string put(const std::string& text) const {
        EXPECT_EQ(ftruncate(file_, 0), 0);
        EXPECT_EQ(pwrite(file_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
        return "/proc/self/fd/" + std::to_string(file_);
    }

  private:
    int file_;
};

const HwlocLibrary& hwloc() {
    std::string problem;
    const HwlocLibrary* library = HwlocLibrary::get(problem);
    EXPECT_NE(library, nullptr) << problem;
    return *library;
}

unsigned crashes = 0;

// Whether hwloc takes it, in another process.
bool is_taken(const Source& source) {
    Made nothing;
    const auto try_it = [&source](Made&) {
        hwloc_topology_t topology = nullptr;
        Error error = load(hwloc(), source, topology);
        if (!error) {
            hwloc().topology_destroy(topology);
        }
        return error;
    };
    Error error = make_isolated(source.text, try_it, nothing);
    if (!error) {
        return true;
    }
    EXPECT_EQ(error.error_class(), WARREN_TOPOLOGY_ERR_DAMAGED);
    const std::unique_ptr<ErrorRecord> record(error.take());
    crashes += record->text.find("does not survive") != std::string::npos ? 1 : 0;
    return false;
}

// False: refused. What hwloc takes is described in this process, where mistakes are seen; what
// comes of it passes all checks, and can be written as XML, which is taken again.
bool survives(const MemoryFile& file, const std::string& text, bool is_second = false) {
    const Source source{.kind = SourceKind::xml, .text = file.put(text)};
    if (!is_taken(source)) {
        return false;
    }
    topology::Description description;
    std::vector<std::byte> image;
    Error error = discover(source, description);
    if (!error) {
        error = topology::encode(description, image);
    }
    if (error) {
        EXPECT_TRUE(error.error_class() == WARREN_TOPOLOGY_ERR_DAMAGED ||
                    error.error_class() == WARREN_TOPOLOGY_ERR_LIMIT ||
                    error.error_class() == WARREN_TOPOLOGY_ERR_ARGUMENT)
            << error.error_class();
        error.drop();
        return false;
    }
    topology::ImageMemory memory;
    EXPECT_FALSE(topology::ImageMemory::copy(image, memory));
    warren_topology* topology = nullptr;
    if (Error refused = topology::make_handle(std::move(memory), WARREN_TOPOLOGY_XML, topology)) {
        const std::unique_ptr<ErrorRecord> record(refused.take());
        ADD_FAILURE() << record->text << "\n" << text;
        return true;
    }
    const std::string again = hwloc_xml(topology);
    warren_topology_close(topology);
    return is_second || survives(file, again, true);
}

class Damage {
  public:
    explicit Damage(unsigned seed) : random_(seed) {}

    std::string of(const std::string& text) {
        std::string damaged = text;
        for (std::size_t change = 1 + below(3); change > 0 && !damaged.empty(); --change) {
            change_one(damaged);
        }
        return damaged;
    }
    std::size_t below(std::size_t limit) { return random_() % limit; }

  private:
    void change_one(std::string& text) {
        static const char* const values[] = {"",
                                             "0",
                                             "-1",
                                             "1",
                                             "2",
                                             "0x0",
                                             "0x1",
                                             "0x3",
                                             "0x5",
                                             "0xf...f",
                                             "0xffffffff,0x0,0x1",
                                             "18446744073709551615",
                                             "70000",
                                             "65536",
                                             "x",
                                             "Core",
                                             "PU",
                                             "Machine",
                                             "NUMANode",
                                             "Misc",
                                             "Group",
                                             "MemCache",
                                             "9999",
                                             "Bandwidth",
                                             "0000:[00-ff]",
                                             "L2Cache",
                                             "5",
                                             "99999",
                                             "\xff\xfe",
                                             "16",
                                             "OSDev:16 "};
        const std::size_t at = below(text.size());
        switch (below(6)) {
        case 0:
            text[at] = static_cast<char>(text[at] ^ 1 << below(8));
            break;
        case 1: { // another value of an attribute
            const std::size_t begin = text.find("=\"", at);
            const std::size_t end = begin == std::string::npos ? begin : text.find('"', begin + 2);
            if (end != std::string::npos) {
                text.replace(begin + 2, end - begin - 2, values[below(std::size(values))]);
            }
            break;
        }
        case 2: { // an attribute less
            const std::size_t begin = text.find(' ', at);
            const std::size_t quote = begin == std::string::npos ? begin : text.find('"', begin);
            const std::size_t end = quote == std::string::npos ? quote : text.find('"', quote + 1);
            // Without an OS index hwloc fills sets up to the largest, for seconds.
            if (end != std::string::npos && text.compare(begin, 4, " os_") != 0) {
                text.erase(begin, end + 1 - begin);
            }
            break;
        }
        case 3: // a line less, or elsewhere, or twice
        case 4: {
            const std::size_t begin = text.rfind('\n', at) + 1; // npos + 1 is 0
            const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
            const std::string line = text.substr(begin, end - begin);
            if (below(2) == 0) {
                text.erase(begin, end - begin);
            }
            if (!text.empty() && below(3) != 0) {
                text.insert(text.rfind('\n', below(text.size())) + 1, line);
            }
            break;
        }
        default:
            if (below(8) == 0) {
                text.resize(at);
            } else {
                text.insert(at, values[below(std::size(values))]);
            }
        }
    }

    std::mt19937 random_;
};

// As programs get it: the reason.
std::string refusal(const MemoryFile& file, const std::string& text, int error_class) {
    std::vector<std::byte> image;
    Error error = discover_image({.kind = SourceKind::xml, .text = file.put(text)}, image);
    EXPECT_EQ(error.error_class(), error_class);
    EXPECT_EQ(image.empty(), error_class != 0);
    const std::unique_ptr<ErrorRecord> record(error.take());
    return record != nullptr ? record->text : "";
}

std::string with(const std::string& part, const std::string& other) {
    std::string text = everything;
    const std::size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return text.replace(at, part.size(), other);
}

TEST(Xml, with_something_of_everything_is_taken) {
    const MemoryFile file;
    EXPECT_EQ(refusal(file, everything, 0), "");
    EXPECT_TRUE(survives(file, everything));
}

TEST(Xml, that_is_cut_off_is_refused) {
    const MemoryFile file;
    const std::string text = everything;
    const std::size_t end = text.find("</topology>");
    for (std::size_t bytes = 0; bytes < end; bytes += 97) {
        EXPECT_NE(refusal(file, text.substr(0, bytes), WARREN_TOPOLOGY_ERR_DAMAGED), "") << bytes;
    }
}

TEST(Xml, of_another_version_is_refused) {
    const MemoryFile file;
    refusal(file, with("version=\"2.0\"", "version=\"9.0\""), WARREN_TOPOLOGY_ERR_DAMAGED);
    refusal(file, with("<topology version=\"2.0\">", "<machine>"), WARREN_TOPOLOGY_ERR_DAMAGED);
}

TEST(Xml, that_contradicts_itself_is_refused_with_the_reason) {
    const MemoryFile file;
    const std::string why =
        refusal(file, with("os_index=\"2\"", "os_index=\"0\""), WARREN_TOPOLOGY_ERR_DAMAGED);
    EXPECT_NE(why.find("two processors or NUMA nodes have the OS index 0"), std::string::npos)
        << why;
}

// hwloc takes any number for a kind of these.
TEST(Xml, with_numbers_that_are_no_kinds_is_refused_with_the_reason) {
    const MemoryFile file;
    for (const char* kind : {"7", "2147483648", "4294967295"}) {
        const std::string why =
            refusal(file, with("osdev_type=\"2\"", "osdev_type=\"" + std::string(kind) + "\""),
                    WARREN_TOPOLOGY_ERR_DAMAGED);
        EXPECT_NE(why.find("a device of the unknown kind " + std::string(kind)), std::string::npos)
            << why;
    }
    EXPECT_EQ(refusal(file, with("osdev_type=\"2\"", "osdev_type=\"6\""), 0), "");
    for (const char* kind : {"2-1", "0-0", "4294967295-1", "1-2147483648"}) {
        const std::string why =
            refusal(file, with("bridge_type=\"0-1\"", "bridge_type=\"" + std::string(kind) + "\""),
                    WARREN_TOPOLOGY_ERR_DAMAGED);
        EXPECT_NE(why.find("a bridge of the unknown kind " + std::string(kind)), std::string::npos)
            << why;
    }
    const std::string why =
        refusal(file, with("kind=\"5\"", "kind=\"4294967301\""), WARREN_TOPOLOGY_ERR_DAMAGED);
    EXPECT_NE(why.find("distances of the unknown kind 4294967301"), std::string::npos) << why;
    // In this process, where the address sanitizer sees what is not given back.
    topology::Description description;
    Error error = discover(
        {.kind = SourceKind::xml, .text = file.put(with("kind=\"5\"", "kind=\"4294967301\""))},
        description);
    EXPECT_EQ(error.error_class(), WARREN_TOPOLOGY_ERR_DAMAGED);
    error.drop();
}

// hwloc leaves out what it doesn't know as a kind of caches.
TEST(Xml, with_a_cache_of_an_unknown_kind_has_one_that_is_known) {
    const MemoryFile file;
    std::vector<std::byte> image;
    for (const auto& [kind, taken] : {std::pair{"2", 2U}, {"3", 0U}, {"2147483648", 0U}}) {
        const std::string text =
            with("cache_type=\"0\"", "cache_type=\"" + std::string(kind) + "\"");
        ASSERT_FALSE(discover_image({.kind = SourceKind::xml, .text = file.put(text)}, image));
        topology::ImageMemory memory;
        ASSERT_FALSE(topology::ImageMemory::copy(image, memory));
        warren_topology* made = nullptr;
        ASSERT_FALSE(topology::make_handle(std::move(memory), WARREN_TOPOLOGY_XML, made));
        warren_cache cache{};
        const warren_object object = warren_topology_object(made, WARREN_OBJECT_MEMORY_CACHE, 0);
        ASSERT_EQ(warren_object_cache(made, object, &cache), WARREN_TOPOLOGY_SUCCESS);
        EXPECT_EQ(cache.kind, taken) << kind;
        warren_topology_close(made);
    }
}

// hwloc 2.9 follows a null pointer where this set is missing.
TEST(Xml, that_hwloc_may_not_survive_does_not_end_the_program) {
    const MemoryFile file;
    const std::string text = with("complete_nodeset=\"0x5\" ", "");
    std::vector<std::byte> image;
    Error error = discover_image({.kind = SourceKind::xml, .text = file.put(text)}, image);
    EXPECT_NE(image.empty(), !error);
    error.drop();
}

TEST(Xml, that_is_damaged_is_refused_or_becomes_an_image_that_is_right) {
    std::vector<std::string> texts{everything};
    for (const std::string& name : files_more) {
        std::ifstream file(name);
        texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
        ASSERT_FALSE(texts.back().empty()) << name;
    }
    setenv("HWLOC_HIDE_ERRORS", "2", 1);
    const MemoryFile file;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds_more);
    Damage damage(seconds_more > 0 ? std::random_device{}() : 1);
    constexpr unsigned rounds = 500;
    unsigned tried = 0;
    unsigned taken = 0;
    do {
        for (unsigned round = 0; round < rounds; ++round, ++tried) {
            const std::string text = damage.of(texts[damage.below(texts.size())]);
            if (const char* last = std::getenv("WARREN_FUZZ_LAST")) { // what it was when it crashed
                std::ofstream(last) << text;
            }
            taken += survives(file, text) ? 1 : 0;
            ASSERT_FALSE(HasFailure());
        }
    } while (std::chrono::steady_clock::now() < end);
    EXPECT_GT(taken, tried / 50);
    EXPECT_LT(taken, tried);
    std::printf("%u damaged texts, %u of them refused, hwloc did not survive %u\n", tried,
                tried - taken, crashes);
}

} // namespace

} // namespace warren::discovery

int main(int argument_count, char** arguments) {
    testing::InitGoogleTest(&argument_count, arguments);
    if (argument_count > 1) {
        warren::discovery::seconds_more = std::atoi(arguments[1]);
        warren::discovery::files_more.assign(arguments + 2, arguments + argument_count);
    }
    return RUN_ALL_TESTS();
}
