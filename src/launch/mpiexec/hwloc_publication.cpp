#include "launch/mpiexec/hwloc_publication.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <sys/mman.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "launch/mpiexec/address_hole.hpp"
#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/limits.hpp"
#include "launch/mpiexec/scoped_variable.hpp"
#include "topology/discovery/hwloc_library.hpp"
#include "topology/discovery/hwloc_xml.hpp"
#include "topology/discovery/named_source.hpp"
#include "topology/handle.hpp"

namespace warren::launch {

namespace {

// The library and one topology of it. While it is open, nobody else in this process discovers.
struct Hwloc {
    Hwloc() = default;
    ~Hwloc() {
        if (topology != nullptr) {
            library->topology_destroy(topology);
        }
    }
    Hwloc(const Hwloc&) = delete;
    Hwloc& operator=(const Hwloc&) = delete;

    Error open() {
        std::string problem;
        library = discovery::HwlocLibrary::get(problem);
        if (library == nullptr) {
            return fail(exit_failure, "%s", problem.c_str());
        }
        calls = std::unique_lock(discovery::HwlocLibrary::calls());
        if (library->topology_init(&topology) != 0) {
            topology = nullptr;
            return fail(exit_failure, "hwloc_topology_init fails");
        }
        return {};
    }

    std::unique_lock<std::mutex> calls;
    const discovery::HwlocLibrary* library = nullptr;
    hwloc_topology_t topology = nullptr;
};

// The source of a topology. The image is made before hwloc is opened, as hwloc may need it, too.
struct Content {
    discovery::NamedSource named;
    std::vector<std::byte> image;
    std::string xml; // the file's text, read once: what the child survived is what hwloc gets
};

Error read_content(const std::string& source, Content& content) {
    if (Error error = discovery::name_source(source, content.named)) {
        return error;
    }
    discovery::Source& named = content.named.source;
    if (content.named.is_image) {
        std::string none; // measured values are not for images
        return discovery::named_image(source, true, content.image, none);
    }
    if (named.kind == discovery::SourceKind::xml) {
        if (Error error = discovery::read_xml(named.text, content.xml)) {
            return error;
        }
        named.content = &content.xml;
        return discovery::discover_image(named, content.image); // in a child, which hwloc may end
    }
    return discovery::check_source(named);
}

Error wrong_source(const std::string& source, const char* why) {
    return fail(exit_failure, "--topology %s: %s", source.c_str(), why);
}

// An image as hwloc reads it.
Error set_image(const Hwloc& hwloc, const std::string& source, std::span<const std::byte> image) {
    topology::ImageMemory memory;
    warren_topology* described = nullptr;
    if (Error error = topology::ImageMemory::copy(image, memory)) {
        return error;
    }
    if (Error error = topology::make_handle(std::move(memory), WARREN_TOPOLOGY_FILE, described)) {
        return error;
    }
    const std::string xml = discovery::hwloc_xml(described);
    warren_topology_close(described);
    return hwloc.library->topology_set_xmlbuffer(hwloc.topology, xml.c_str(),
                                                 static_cast<int>(xml.size()) + 1) == 0
               ? Error{}
               : wrong_source(source, "hwloc does not take it");
}

Error load(const Hwloc& hwloc, bool with_devices, const std::string& source,
           const Content& content) {
    const discovery::HwlocLibrary& library = *hwloc.library;
    // Devices are what hwloc's plug-ins know, and loading those takes longer than all else.
    std::optional<ScopedVariable> no_plugins;
    std::optional<ScopedVariable> root;
    std::optional<ScopedVariable> components;
    if (with_devices) {
        library.topology_set_io_types_filter(hwloc.topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    } else {
        no_plugins.emplace("HWLOC_PLUGINS_PATH", "/nonexistent");
    }
    const discovery::NamedSource& named = content.named;
    const std::string& text = named.source.text;
    if (named.is_image) {
        if (Error error = set_image(hwloc, source, content.image)) {
            return error;
        }
    } else if (named.source.kind == discovery::SourceKind::synthetic) {
        if (library.topology_set_synthetic(hwloc.topology, text.c_str()) != 0) {
            return wrong_source(source, "hwloc does not understand this description");
        }
    } else if (named.source.kind == discovery::SourceKind::dump) {
        root.emplace("HWLOC_FSROOT", text.c_str());
        components.emplace("HWLOC_COMPONENTS", "linux,stop");
    } else if (named.source.kind == discovery::SourceKind::xml) {
        if (library.topology_set_xmlbuffer(hwloc.topology, content.xml.c_str(),
                                           static_cast<int>(content.xml.size()) + 1) != 0) {
            return wrong_source(source, "this is no topology in hwloc's XML form");
        }
    }
    if (library.topology_load(hwloc.topology) != 0) {
        return fail(exit_failure, "%s%s: hwloc_topology_load: %s",
                    source.empty() ? "this machine" : "--topology ", source.c_str(),
                    std::strerror(errno));
    }
    return {};
}

int new_memory_file(const char* name) {
    return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

// Makes the file read-only for good, and a descriptor of it that can't write either, which ranks
// inherit: a shared mapping of a sealed file is refused by older kernels if the descriptor could.
int seal(int file) {
    if (fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
        close(file);
        return -1;
    }
    const int reader = open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDONLY);
    close(file);
    return reader;
}

// Makes the caches of all attributes valid in the copy at `address`.
bool refresh_attributes(const Hwloc& hwloc, int file, std::uint64_t offset, void* address,
                        std::uint64_t length) {
    hwloc_topology_t copy = nullptr;
    if (hwloc.library->shmem_topology_adopt(&copy, file, offset, address, length, 0) != 0) {
        return false;
    }
    const bool writable = mmap(address, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                               file, static_cast<off_t>(offset)) != MAP_FAILED;
    unsigned long flags = 0;
    for (unsigned attribute = 0;
         writable && hwloc.library->memattr_get_flags(copy, attribute, &flags) == 0; ++attribute) {
        unsigned count = 0;
        hwloc.library->memattr_get_targets(copy, attribute, nullptr, 0, &count, nullptr, nullptr);
    }
    hwloc.library->topology_destroy(copy); // and unmaps
    return writable;
}

Error write_copies(const Hwloc& hwloc, const HwlocSharing& asked, HwlocOffer& offer) {
    std::size_t length = 0;
    if (hwloc.library->shmem_topology_get_length(hwloc.topology, &length, 0) != 0) {
        return fail(exit_failure, "hwloc_shmem_topology_get_length: %s", std::strerror(errno));
    }
    const std::uint64_t all = length * asked.copies;
    offer.length = length;
    offer.copies = asked.copies;
    offer.address = asked.address;
    if (asked.address == 0) {
        offer.address = find_hole(asked.place, all);
    }
    if (offer.address == 0) {
        return fail(exit_failure, "the address space has no such hole");
    }
    if (Error error = check_free_memory(all)) {
        return error;
    }
    const int file = new_memory_file("warren-hwloc");
    if (file < 0) {
        return fail(exit_failure, "memfd_create: %s", std::strerror(errno));
    }
    for (unsigned index = 0; index < asked.copies; ++index) {
        const std::uint64_t offset = index * offer.length;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): where all processes map it
        void* const address = reinterpret_cast<void*>(offer.address + offset);
        // Committed first: a full node is an error, and not a signal while hwloc writes.
        int error = posix_fallocate(file, static_cast<off_t>(offset), static_cast<off_t>(length));
        if (error == 0 && (hwloc.library->shmem_topology_write(hwloc.topology, file, offset,
                                                               address, length, 0) != 0 ||
                           !refresh_attributes(hwloc, file, offset, address, length))) {
            error = errno;
        }
        if (error != 0) {
            close(file);
            return error == EBUSY ? fail(exit_failure, "0x%llx is not free in mpiexec",
                                         static_cast<unsigned long long>(offer.address) + offset)
                                  : fail(exit_failure, "writing it: %s", std::strerror(error));
        }
    }
    offer.shmem = seal(file);
    return offer.shmem >= 0 ? Error{} : fail(exit_failure, "sealing: %s", std::strerror(errno));
}

Error write_xml(const Hwloc& hwloc, HwlocOffer& offer, std::size_t& bytes) {
    char* text = nullptr;
    int size = 0; // with the byte that ends it
    if (hwloc.library->topology_export_xmlbuffer(hwloc.topology, &text, &size, 0) != 0 ||
        size < 1) {
        return fail(exit_failure, "hwloc_topology_export_xmlbuffer: %s", std::strerror(errno));
    }
    bytes = static_cast<std::size_t>(size) - 1;
    const int file = new_memory_file("warren-hwloc-xml");
    std::size_t written = 0;
    while (file >= 0 && written < bytes) {
        const ssize_t part = write(file, text + written, bytes - written);
        if (part <= 0) {
            break;
        }
        written += static_cast<std::size_t>(part);
    }
    hwloc.library->free_xmlbuffer(hwloc.topology, text);
    if (written < bytes) {
        const int error = errno;
        if (file >= 0) {
            close(file);
        }
        return fail(exit_failure, "a memory file: %s", std::strerror(error));
    }
    offer.xml = seal(file);
    return offer.xml >= 0 ? Error{} : fail(exit_failure, "sealing: %s", std::strerror(errno));
}

std::string text_of(Error& error) {
    const std::unique_ptr<ErrorRecord> record(error.take());
    return record->text;
}

} // namespace

HwlocPublication::~HwlocPublication() {
    for (const int descriptor : descriptors()) {
        close(descriptor);
    }
}

std::vector<int> HwlocPublication::descriptors() const {
    std::vector<int> all;
    for (const int one : {offer_.shmem, offer_.xml}) {
        if (one >= 0) {
            all.push_back(one);
        }
    }
    return all;
}

Error HwlocPublication::make(const HwlocSharing& asked, const std::string& source) {
    const std::uint64_t start = monotonic_ns();
    offer_.way = asked.way;
    if (asked.way == HwlocWay::native) {
        offer_.filters[0] = '0'; // of nothing, but a word of the text
        return {};
    }
    Content content;
    if (Error error = read_content(source, content)) {
        return error;
    }
    Hwloc hwloc;
    if (Error error = hwloc.open()) {
        return error;
    }
    if (Error error = load(hwloc, asked.devices, source, content)) {
        return error;
    }
    offer_.is_this_system = hwloc.library->topology_is_thissystem(hwloc.topology) != 0;
    for (std::size_t type = 0; type < hwloc_types_limit; ++type) {
        hwloc_type_filter_e filter = HWLOC_TYPE_FILTER_KEEP_ALL;
        if (hwloc.library->topology_get_type_filter(
                hwloc.topology, static_cast<hwloc_obj_type_t>(type), &filter) != 0) {
            break;
        }
        offer_.filters[type] = static_cast<char>('0' + filter);
    }
    std::string note;
    if (asked.way == HwlocWay::automatic || asked.way == HwlocWay::shmem) {
        if (Error error = write_copies(hwloc, asked, offer_)) {
            if (asked.way == HwlocWay::shmem) {
                return error;
            }
            notes_.push_back("hwloc's topology can't be shared (" + text_of(error) +
                             "): ranks read XML");
        } else {
            char text[160];
            std::snprintf(text, sizeof text, "%u copies of %llu kB at 0x%llx, ", offer_.copies,
                          static_cast<unsigned long long>(offer_.length >> 10),
                          static_cast<unsigned long long>(offer_.address));
            note += text;
        }
    }
    if (asked.way == HwlocWay::automatic || asked.way == HwlocWay::xml) {
        std::size_t bytes = 0;
        if (Error error = write_xml(hwloc, offer_, bytes)) {
            if (asked.way == HwlocWay::xml) {
                return error;
            }
            notes_.push_back("no XML of hwloc's topology: " + text_of(error));
        } else {
            note += "XML of " + std::to_string(bytes >> 10) + " kB, ";
        }
    }
    char text[64];
    std::snprintf(text, sizeof text, "made in %.1f ms",
                  static_cast<double>(monotonic_ns() - start) * 1e-6);
    notes_.push_back("hwloc's topology for the ranks: " + note + text);
    return {};
}

} // namespace warren::launch
