#include "launch/hwloc_publication.hpp"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <hwloc.h>
#include <hwloc/shmem.h>
#include <memory>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "launch/address_hole.hpp"
#include "launch/limits.hpp"
#include "launch/scoped_variable.hpp"
#include "mpi.h"

namespace warren::launch {

namespace {

// hwloc's functions, found at run time, and one topology.
class Hwloc {
  public:
    ~Hwloc() {
        if (topology != nullptr) {
            topology_destroy(topology);
        }
    }
    Hwloc() = default;
    Hwloc(const Hwloc&) = delete;
    Hwloc& operator=(const Hwloc&) = delete;

    Error open();

    hwloc_topology_t topology = nullptr;

    decltype(&hwloc_topology_init) topology_init = nullptr;
    decltype(&hwloc_topology_load) topology_load = nullptr;
    decltype(&hwloc_topology_destroy) topology_destroy = nullptr;
    decltype(&hwloc_topology_set_xml) set_xml = nullptr;
    decltype(&hwloc_topology_set_synthetic) set_synthetic = nullptr;
    decltype(&hwloc_topology_set_io_types_filter) set_io_types_filter = nullptr;
    decltype(&hwloc_topology_get_type_filter) get_type_filter = nullptr;
    decltype(&hwloc_topology_is_thissystem) is_thissystem = nullptr;
    decltype(&hwloc_topology_export_xmlbuffer) export_xmlbuffer = nullptr;
    decltype(&hwloc_free_xmlbuffer) free_xmlbuffer = nullptr;
    decltype(&hwloc_shmem_topology_get_length) shmem_length = nullptr;
    decltype(&hwloc_shmem_topology_write) shmem_write = nullptr;
    decltype(&hwloc_shmem_topology_adopt) shmem_adopt = nullptr;
    // Of hwloc 2.3 and newer; older ones have no attributes, and no caches of them.
    decltype(&hwloc_memattr_get_flags) memattr_flags = nullptr;
    decltype(&hwloc_memattr_get_targets) memattr_targets = nullptr;
};

Error Hwloc::open() {
    void* library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return fail(MPI_ERR_OTHER, "%s", dlerror());
    }
    std::string missing;
    const auto find = [&](const char* name, auto& function) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        if (function == nullptr) {
            missing = name;
        }
    };
    find("hwloc_memattr_get_flags", memattr_flags);
    find("hwloc_memattr_get_targets", memattr_targets);
    missing.clear();
    find("hwloc_topology_init", topology_init);
    find("hwloc_topology_load", topology_load);
    find("hwloc_topology_destroy", topology_destroy);
    find("hwloc_topology_set_xml", set_xml);
    find("hwloc_topology_set_synthetic", set_synthetic);
    find("hwloc_topology_set_io_types_filter", set_io_types_filter);
    find("hwloc_topology_get_type_filter", get_type_filter);
    find("hwloc_topology_is_thissystem", is_thissystem);
    find("hwloc_topology_export_xmlbuffer", export_xmlbuffer);
    find("hwloc_free_xmlbuffer", free_xmlbuffer);
    find("hwloc_shmem_topology_get_length", shmem_length);
    find("hwloc_shmem_topology_write", shmem_write);
    find("hwloc_shmem_topology_adopt", shmem_adopt);
    if (!missing.empty()) {
        return fail(MPI_ERR_OTHER, "%s is missing in libhwloc.so.15", missing.c_str());
    }
    if (topology_init(&topology) != 0) {
        topology = nullptr;
        return fail(MPI_ERR_OTHER, "hwloc_topology_init fails");
    }
    return {};
}

Error load(Hwloc& hwloc, bool with_devices, const std::string& source) {
    constexpr std::string_view synthetic = "synthetic:";
    // Devices are what hwloc's plug-ins know, and loading those takes longer than all else.
    std::optional<ScopedVariable> no_plugins;
    std::optional<ScopedVariable> root;
    std::optional<ScopedVariable> components;
    if (!with_devices) {
        no_plugins.emplace("HWLOC_PLUGINS_PATH", "/nonexistent");
    }
    if (with_devices) {
        hwloc.set_io_types_filter(hwloc.topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    }
    if (source.starts_with(synthetic)) {
        if (hwloc.set_synthetic(hwloc.topology, source.c_str() + synthetic.size()) != 0) {
            return fail(MPI_ERR_ARG, "--topology %s: hwloc does not understand this description",
                        source.c_str());
        }
    } else if (is_folder(source)) {
        root.emplace("HWLOC_FSROOT", source.c_str());
        components.emplace("HWLOC_COMPONENTS", "linux,stop");
    } else if (!source.empty()) {
        if (access(source.c_str(), R_OK) != 0) {
            return fail(MPI_ERR_ARG, "--topology %s: %s", source.c_str(), std::strerror(errno));
        }
        if (hwloc.set_xml(hwloc.topology, source.c_str()) != 0) {
            return fail(MPI_ERR_ARG, "--topology %s: this is no topology in hwloc's XML form",
                        source.c_str());
        }
    }
    if (hwloc.topology_load(hwloc.topology) != 0) {
        return fail(MPI_ERR_OTHER, "%s%s: hwloc_topology_load: %s",
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
    if (hwloc.shmem_adopt(&copy, file, offset, address, length, 0) != 0) {
        return false;
    }
    const bool writable = mmap(address, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                               file, static_cast<off_t>(offset)) != MAP_FAILED;
    unsigned long flags = 0;
    for (unsigned attribute = 0; writable && hwloc.memattr_targets != nullptr &&
                                 hwloc.memattr_flags(copy, attribute, &flags) == 0;
         ++attribute) {
        unsigned count = 0;
        hwloc.memattr_targets(copy, attribute, nullptr, 0, &count, nullptr, nullptr);
    }
    hwloc.topology_destroy(copy); // and unmaps
    return writable;
}

Error write_copies(const Hwloc& hwloc, const HwlocSharing& asked, HwlocOffer& offer) {
    std::size_t length = 0;
    if (hwloc.shmem_length(hwloc.topology, &length, 0) != 0) {
        return fail(MPI_ERR_OTHER, "hwloc_shmem_topology_get_length: %s", std::strerror(errno));
    }
    const std::uint64_t all = length * asked.copies;
    offer.length = length;
    offer.copies = asked.copies;
    offer.address = asked.address;
    if (asked.address == 0) {
        offer.address = find_hole(asked.place, all);
    }
    if (offer.address == 0) {
        return fail(MPI_ERR_OTHER, "the address space has no such hole");
    }
    if (Error error = check_memory_room(all)) {
        return error;
    }
    const int file = new_memory_file("warren-hwloc");
    if (file < 0) {
        return fail(MPI_ERR_OTHER, "memfd_create: %s", std::strerror(errno));
    }
    for (unsigned index = 0; index < asked.copies; ++index) {
        const std::uint64_t offset = index * offer.length;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): where all processes map it
        void* const address = reinterpret_cast<void*>(offer.address + offset);
        // Committed first: a full node is an error, and not a signal while hwloc writes.
        int error = posix_fallocate(file, static_cast<off_t>(offset), static_cast<off_t>(length));
        if (error == 0 &&
            (hwloc.shmem_write(hwloc.topology, file, offset, address, length, 0) != 0 ||
             !refresh_attributes(hwloc, file, offset, address, length))) {
            error = errno;
        }
        if (error != 0) {
            close(file);
            return error == EBUSY ? fail(MPI_ERR_OTHER, "0x%llx is not free in mpiexec",
                                         static_cast<unsigned long long>(offer.address) + offset)
                                  : fail(MPI_ERR_OTHER, "writing it: %s", std::strerror(error));
        }
    }
    offer.shmem = seal(file);
    return offer.shmem >= 0 ? Error{} : fail(MPI_ERR_OTHER, "sealing: %s", std::strerror(errno));
}

Error write_xml(const Hwloc& hwloc, HwlocOffer& offer, std::size_t& bytes) {
    char* text = nullptr;
    int size = 0; // with the byte that ends it
    if (hwloc.export_xmlbuffer(hwloc.topology, &text, &size, 0) != 0 || size < 1) {
        return fail(MPI_ERR_OTHER, "hwloc_topology_export_xmlbuffer: %s", std::strerror(errno));
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
    hwloc.free_xmlbuffer(hwloc.topology, text);
    if (written < bytes) {
        const int error = errno;
        if (file >= 0) {
            close(file);
        }
        return fail(MPI_ERR_OTHER, "a memory file: %s", std::strerror(error));
    }
    offer.xml = seal(file);
    return offer.xml >= 0 ? Error{} : fail(MPI_ERR_OTHER, "sealing: %s", std::strerror(errno));
}

std::string text_of(Error& error) {
    const std::unique_ptr<ErrorRecord> record(error.take());
    return record->text;
}

} // namespace

bool is_folder(const std::string& path) {
    struct stat status;
    return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

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
    Hwloc hwloc;
    if (Error error = hwloc.open()) {
        return error;
    }
    if (Error error = load(hwloc, asked.devices, source)) {
        return error;
    }
    offer_.is_this_system = hwloc.is_thissystem(hwloc.topology) != 0;
    for (std::size_t type = 0; type < hwloc_types_limit; ++type) {
        hwloc_type_filter_e filter = HWLOC_TYPE_FILTER_KEEP_ALL;
        if (hwloc.get_type_filter(hwloc.topology, static_cast<hwloc_obj_type_t>(type), &filter) !=
            0) {
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
