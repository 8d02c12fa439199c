// libwarren-hwloc.so, the stand-in: lets unmodified programs that call hwloc_topology_load take the
// topology that mpiexec has made once for the node (mpiexec --hwloc-shmem preloads it).
//
// hwloc_topology_load adopts a shared copy: objects are the node's, about 1 kB is the process's. A
// process that loads again adopts the next copy (hwloc maps a copy at one address only), and reads
// the XML when there is none left. Where that doesn't work either, hwloc discovers, as without us.
//
// An adopted topology is another handle than the program's, so the two structures, both of hwloc's
// own making and of one size, exchange their contents, and the former one is destroyed. Nothing
// in a topology points at the structure itself. The mapping is replaced by a private one of the
// same pages: what the program writes (userdata of objects, caches of hwloc's) is its own, and
// no other process sees it.
//
// A program that names its own source, asks for other objects than the node's topology has, or
// sets HWLOC_… variables gets what it asks for. hwloc refuses to change adopted topologies;
// hwloc_topology_restrict and _allow therefore continue on an own duplicate.
//
// Thread rule: any thread. Nothing of C++ but the language is used: the library is loaded into
// programs that may have another C++ library, or none.
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <hwloc.h>
#include <hwloc/shmem.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/mpiexec/hwloc_offer.hpp"

using warren::launch::HwlocOffer;
using warren::launch::HwlocReport;
using warren::launch::HwlocWay;
using warren::launch::read_hwloc_offer;

namespace {

// The interface of hwloc's that the offer's numbers of types and filters belong to.
constexpr unsigned major_version = HWLOC_API_VERSION >> 16;

// hwloc's function that the caller would have got without us: behind us among the program's
// libraries, or, in a plug-in's own, among those that the plug-in needs.
template <typename Function>
Function real(const char* name, const void* caller) {
    void* found = dlsym(RTLD_NEXT, name);
    Dl_info place;
    if (found == nullptr && dladdr(caller, &place) != 0 && place.dli_fname != nullptr) {
        if (void* library = dlopen(place.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
            found = dlsym(library, name);
            dlclose(library);
        }
    }
    return reinterpret_cast<Function>(found);
}

#define WARREN_REAL(name) real<decltype(&(name))>(#name, __builtin_return_address(0))

int no_such_function() {
    errno = ENOSYS;
    return -1;
}

// --- what is known of the program's topologies -------------------

struct Known {
    hwloc_topology_t topology = nullptr;
    bool own_source = false;           // the program said where it comes from
    bool adopted = false;              // by us
    hwloc_topology_t former = nullptr; // what was adopted before it became an own duplicate
};

// Few programs have more than two at a time; with more than these everything is left to hwloc.
constexpr std::size_t known_limit = 64;
Known known_topologies[known_limit];
pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

class Lock {
  public:
    Lock() { pthread_mutex_lock(&known_lock); }
    ~Lock() { pthread_mutex_unlock(&known_lock); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
};

// With the lock held. Null: not known (or, with `adds`, no room).
Known* find_known(hwloc_topology_t topology, bool adds) {
    Known* empty = nullptr;
    for (Known& known : known_topologies) {
        if (known.topology == topology) {
            return &known;
        }
        if (known.topology == nullptr && empty == nullptr) {
            empty = &known;
        }
    }
    if (!adds || empty == nullptr) {
        return nullptr;
    }
    *empty = {};
    empty->topology = topology;
    return empty;
}

Known take_known(hwloc_topology_t topology) {
    const Lock lock;
    Known* known = find_known(topology, false);
    const Known taken = known != nullptr ? *known : Known{};
    if (known != nullptr) {
        *known = {};
    }
    return taken;
}

void has_own_source(hwloc_topology_t topology) {
    const Lock lock;
    if (Known* known = find_known(topology, true)) {
        known->own_source = true;
    }
}

// --- loading -----------------------------------------------------

struct Hwloc {
    decltype(&hwloc_get_api_version) get_api_version;
    decltype(&hwloc_topology_load) load;
    decltype(&hwloc_topology_destroy) destroy;
    decltype(&hwloc_topology_get_flags) get_flags;
    decltype(&hwloc_topology_set_flags) set_flags;
    decltype(&hwloc_topology_get_type_filter) get_type_filter;
    decltype(&hwloc_topology_get_userdata) get_userdata;
    decltype(&hwloc_topology_set_userdata) set_userdata;
    decltype(&hwloc_topology_set_xml) set_xml;
    decltype(&hwloc_shmem_topology_adopt) adopt;

    // False: hwloc is not to be found, or older than 2.0.
    bool find(const void* caller) {
        return (
            (get_api_version = real<decltype(get_api_version)>("hwloc_get_api_version", caller)) &&
            (load = real<decltype(load)>("hwloc_topology_load", caller)) &&
            (destroy = real<decltype(destroy)>("hwloc_topology_destroy", caller)) &&
            (get_flags = real<decltype(get_flags)>("hwloc_topology_get_flags", caller)) &&
            (set_flags = real<decltype(set_flags)>("hwloc_topology_set_flags", caller)) &&
            (get_type_filter =
                 real<decltype(get_type_filter)>("hwloc_topology_get_type_filter", caller)) &&
            (get_userdata = real<decltype(get_userdata)>("hwloc_topology_get_userdata", caller)) &&
            (set_userdata = real<decltype(set_userdata)>("hwloc_topology_set_userdata", caller)) &&
            (set_xml = real<decltype(set_xml)>("hwloc_topology_set_xml", caller)) &&
            (adopt = real<decltype(adopt)>("hwloc_shmem_topology_adopt", caller)));
    }
};

// The outcome of a load, for mpiexec -v.
class Reason {
  public:
    [[gnu::format(printf, 2, 3)]] void set(const char* format, ...) {
        va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(report_.reason.data(), report_.reason.size(), format, arguments);
        va_end(arguments);
    }

    void send_as(HwlocWay way, const HwlocOffer& offer) {
        if (offer.report < 0) {
            return;
        }
        const int error = errno;
        const char* rank = std::getenv("WARREN_RANK");
        report_.rank = rank != nullptr ? std::atoi(rank) : -1;
        report_.way = static_cast<std::uint32_t>(way);
        send(offer.report, &report_, sizeof report_, MSG_DONTWAIT | MSG_NOSIGNAL);
        errno = error;
    }

  private:
    HwlocReport report_;
};

// Programs close descriptors, and others get their numbers: ours are memory files that nobody can
// change any more.
bool is_sealed(int descriptor) {
    const int seals = fcntl(descriptor, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_WRITE) != 0;
}

// Two topologies of one library, whose type programs don't know: they have the same size, which is
// at most what malloc has given to either.
void exchange(void* one, void* other) {
    const std::size_t own_bytes = malloc_usable_size(one);
    const std::size_t other_bytes = malloc_usable_size(other);
    const std::size_t bytes = own_bytes < other_bytes ? own_bytes : other_bytes;
    auto* first = static_cast<char*>(one);
    auto* second = static_cast<char*>(other);
    for (std::size_t index = 0; index < bytes; ++index) {
        const char kept = first[index];
        first[index] = second[index];
        second[index] = kept;
    }
}

// How the program's filters compare with those of the node's topology.
enum class Filters : std::uint8_t { equal, narrower, wider };

Filters compare_filters(const Hwloc& hwloc, hwloc_topology_t topology, const HwlocOffer& offer) {
    Filters result = Filters::equal;
    for (int type = 0; offer.filters[static_cast<std::size_t>(type)] != '\0'; ++type) {
        hwloc_type_filter_e asked = HWLOC_TYPE_FILTER_KEEP_ALL;
        if (hwloc.get_type_filter(topology, static_cast<hwloc_obj_type_t>(type), &asked) != 0) {
            break;
        }
        const int offered = offer.filters[static_cast<std::size_t>(type)] - '0';
        if (static_cast<int>(asked) == offered) {
            continue;
        }
        if (asked != HWLOC_TYPE_FILTER_KEEP_NONE && offered != HWLOC_TYPE_FILTER_KEEP_ALL) {
            return Filters::wider;
        }
        result = Filters::narrower;
    }
    return result;
}

// Makes the program's topology an adopted one.
bool adopt_copy(const Hwloc& hwloc, hwloc_topology_t topology, const HwlocOffer& offer,
                Reason& reason) {
    if (!is_sealed(offer.shmem)) {
        reason.set("the program has closed descriptor %d", offer.shmem);
        return false;
    }
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", offer.shmem);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        reason.set("%s: %s", path, std::strerror(errno));
        return false;
    }
    hwloc_topology_t adopted = nullptr;
    for (unsigned copy = 0; copy < offer.copies && adopted == nullptr; ++copy) {
        const std::uint64_t offset = copy * offer.length;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): where all processes map it
        void* const address = reinterpret_cast<void*>(offer.address + offset);
        if (hwloc.adopt(&adopted, file, offset, address, offer.length, 0) == 0) {
            if (mmap(address, offer.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file,
                     static_cast<off_t>(offset)) == MAP_FAILED) {
                reason.set("read-only: %s", std::strerror(errno)); // as hwloc has mapped it
            }
            break;
        }
        adopted = nullptr;
        if (errno != EBUSY) {
            break;
        }
    }
    const int error = errno;
    close(file);
    if (adopted == nullptr) {
        if (error == EBUSY) {
            reason.set("all %u copies are in use, or 0x%llx is taken", offer.copies,
                       static_cast<unsigned long long>(offer.address));
        } else if (error == EINVAL) {
            reason.set("the program's hwloc is of another make than mpiexec's");
        } else {
            reason.set("hwloc_shmem_topology_adopt: %s", std::strerror(error));
        }
        errno = error;
        return false;
    }
    void* const userdata = hwloc.get_userdata(topology);
    exchange(topology, adopted);
    hwloc.destroy(adopted);
    hwloc.set_userdata(topology, userdata);
    return true;
}

bool load_xml(const Hwloc& hwloc, hwloc_topology_t topology, const HwlocOffer& offer,
              Reason& reason) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", offer.xml);
    const unsigned long flags = hwloc.get_flags(topology);
    if (offer.xml < 0) {
        reason.set("there is no XML");
    } else if (!is_sealed(offer.xml)) {
        reason.set("the program has closed descriptor %d", offer.xml);
    } else if (hwloc.set_xml(topology, path) != 0) {
        reason.set("hwloc_topology_set_xml %s: %s", path, std::strerror(errno));
    } else if (hwloc.set_flags(
                   topology,
                   flags | (offer.is_this_system ? HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM : 0)) == 0 &&
               hwloc.load(topology) == 0) {
        return true;
    } else {
        reason.set("hwloc can't load the XML: %s", std::strerror(errno));
        hwloc.set_flags(topology, flags);
    }
    errno = EINVAL;
    return false;
}

// Why the program gets its own discovery; null: it may have the node's topology.
const char* wants_its_own(const Hwloc& hwloc, hwloc_topology_t topology, Filters filters) {
    for (const char* name : {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_CPUID_PATH",
                             "HWLOC_COMPONENTS", "HWLOC_THISSYSTEM"}) {
        if (std::getenv(name) != nullptr) {
            return "variables of hwloc's are set";
        }
    }
    {
        const Lock lock;
        const Known* known = find_known(topology, true);
        if (known == nullptr || known->own_source) {
            return "the program names its own source";
        }
    }
    if (filters == Filters::wider) {
        return "the program asks for more kinds of objects (--hwloc-shmem=io has devices)";
    }
    if ((hwloc.get_flags(topology) & HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0) {
        return "the program asks for processors that it may not use";
    }
    return nullptr;
}

int load(hwloc_topology_t topology, const void* caller) {
    const auto real_load = real<decltype(&hwloc_topology_load)>("hwloc_topology_load", caller);
    if (real_load == nullptr) {
        return no_such_function();
    }
    HwlocOffer offer;
    Hwloc hwloc;
    if (!read_hwloc_offer(std::getenv("WARREN_HWLOC"), std::getenv("WARREN_HWLOC_SHMEM"),
                          std::getenv("WARREN_HWLOC_XML"), offer) ||
        !hwloc.find(caller) ||
        hwloc.set_flags(topology, hwloc.get_flags(topology)) != 0) { // it is loaded already
        return real_load(topology);
    }
    Reason reason;
    const bool same_numbers = hwloc.get_api_version() >> 16 == major_version;
    const Filters filters =
        same_numbers ? compare_filters(hwloc, topology, offer) : Filters::narrower;
    const unsigned long flags = hwloc.get_flags(topology);
    const char* refusal = wants_its_own(hwloc, topology, filters);
    if (refusal != nullptr || offer.way == HwlocWay::native) {
        reason.set("%s", offer.way == HwlocWay::native ? "as asked" : refusal);
        reason.send_as(HwlocWay::native, offer);
        return real_load(topology);
    }
    if (offer.way != HwlocWay::xml) {
        if (offer.shmem < 0) {
            reason.set("there is no shared topology");
        } else if (!same_numbers) {
            reason.set("the program's hwloc is of another make than mpiexec's");
        } else if (filters != Filters::equal ||
                   (flags & ~std::uint64_t{HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM}) != 0) {
            reason.set("the program asks for other objects than there are by default");
        } else if (adopt_copy(hwloc, topology, offer, reason)) {
            reason.send_as(HwlocWay::shmem, offer);
            const Lock lock;
            if (Known* known = find_known(topology, true)) {
                known->adopted = true;
            }
            return 0;
        }
        if (offer.way == HwlocWay::shmem) {
            const int error = errno;
            reason.send_as(HwlocWay::automatic, offer);
            errno = error != 0 ? error : EBUSY;
            return -1;
        }
    }
    if (load_xml(hwloc, topology, offer, reason)) {
        reason.send_as(HwlocWay::xml, offer);
        return 0;
    }
    if (offer.way == HwlocWay::xml) {
        reason.send_as(HwlocWay::automatic, offer);
        return -1;
    }
    reason.send_as(HwlocWay::native, offer);
    return real_load(topology);
}

// Makes an adopted topology an own one, which may be changed. What was adopted stays mapped: the
// program may hold pointers to its objects.
bool become_own(hwloc_topology_t topology, const void* caller) {
    const auto duplicate = real<decltype(&hwloc_topology_dup)>("hwloc_topology_dup", caller);
    const Lock lock;
    Known* known = find_known(topology, false);
    hwloc_topology_t own = nullptr;
    if (known == nullptr || !known->adopted || duplicate == nullptr ||
        duplicate(&own, topology) != 0) {
        return false;
    }
    exchange(topology, own);
    known->adopted = false;
    known->former = own;
    return true;
}

} // namespace

extern "C" {

int hwloc_topology_init(hwloc_topology_t* topology) {
    const auto function = WARREN_REAL(hwloc_topology_init);
    if (function == nullptr) {
        return no_such_function();
    }
    const int result = function(topology);
    if (result == 0) {
        take_known(*topology); // the memory of one that ended unseen
    }
    return result;
}

int hwloc_topology_load(hwloc_topology_t topology) {
    return load(topology, __builtin_return_address(0));
}

void hwloc_topology_destroy(hwloc_topology_t topology) {
    const auto function = WARREN_REAL(hwloc_topology_destroy);
    if (function == nullptr) {
        return;
    }
    const Known known = take_known(topology);
    function(topology);
    if (known.former != nullptr) {
        function(known.former);
    }
}

int hwloc_topology_set_pid(hwloc_topology_t topology, hwloc_pid_t pid) {
    const auto function = WARREN_REAL(hwloc_topology_set_pid);
    has_own_source(topology);
    return function != nullptr ? function(topology, pid) : no_such_function();
}

int hwloc_topology_set_synthetic(hwloc_topology_t topology, const char* description) {
    const auto function = WARREN_REAL(hwloc_topology_set_synthetic);
    has_own_source(topology);
    return function != nullptr ? function(topology, description) : no_such_function();
}

int hwloc_topology_set_xml(hwloc_topology_t topology, const char* path) {
    const auto function = WARREN_REAL(hwloc_topology_set_xml);
    has_own_source(topology);
    return function != nullptr ? function(topology, path) : no_such_function();
}

int hwloc_topology_set_xmlbuffer(hwloc_topology_t topology, const char* buffer, int size) {
    const auto function = WARREN_REAL(hwloc_topology_set_xmlbuffer);
    has_own_source(topology);
    return function != nullptr ? function(topology, buffer, size) : no_such_function();
}

int hwloc_topology_restrict(hwloc_topology_t topology, hwloc_const_bitmap_t set,
                            unsigned long flags) {
    const auto function = WARREN_REAL(hwloc_topology_restrict);
    if (function == nullptr) {
        return no_such_function();
    }
    const int result = function(topology, set, flags);
    return result != 0 && errno == EPERM && become_own(topology, __builtin_return_address(0))
               ? function(topology, set, flags)
               : result;
}

int hwloc_topology_allow(hwloc_topology_t topology, hwloc_const_cpuset_t processors,
                         hwloc_const_nodeset_t memories, unsigned long flags) {
    const auto function = WARREN_REAL(hwloc_topology_allow);
    if (function == nullptr) {
        return no_such_function();
    }
    const int result = function(topology, processors, memories, flags);
    return result != 0 && errno == EPERM && become_own(topology, __builtin_return_address(0))
               ? function(topology, processors, memories, flags)
               : result;
}

} // extern "C"
