// HwlocLibrary: the functions of hwloc, found at run time, so that programs which never ask for
// discovery don't load it, and none needs it to start.
//
// Loaded with local scope, so a program's own hwloc, of whatever version, is not disturbed.
// Versions 2.9 and newer of the ABI libhwloc.so.15 do. Header-only helpers of hwloc.h that call
// others of its functions can't be used with it. Thread rule: get() may be called by any thread;
// the object is constant and stays for ever.
#pragma once

#include <hwloc.h>
#include <hwloc/shmem.h>
#include <mutex>
#include <string>

namespace warren::discovery {

// Every function that is used: its name without hwloc_.
// Formatted by hand: clang-format would indent each line more than the one before.
// clang-format off
#define WARREN_HWLOC_FUNCTIONS(apply)                                                              \
    apply(get_api_version) apply(topology_init) apply(topology_load) apply(topology_destroy)      \
    apply(topology_set_flags) apply(topology_set_all_types_filter)                                \
    apply(topology_set_type_filter) apply(topology_set_io_types_filter)                           \
    apply(topology_set_components) apply(topology_set_xml) apply(topology_set_xmlbuffer)          \
    apply(topology_set_synthetic) apply(topology_get_depth) apply(topology_get_allowed_cpuset)    \
    apply(topology_get_allowed_nodeset) apply(get_type_depth) apply(get_depth_type)               \
    apply(get_nbobjs_by_depth) apply(get_obj_by_depth) apply(bitmap_next) apply(bitmap_last)      \
    apply(bitmap_alloc) apply(bitmap_free) apply(bitmap_to_ith_ulong) apply(distances_get)        \
    apply(distances_get_name) apply(distances_release) apply(cpukinds_get_nr)                     \
    apply(cpukinds_get_info) apply(memattr_get_name) apply(memattr_get_flags)                     \
    apply(memattr_get_targets) apply(memattr_get_initiators) apply(memattr_get_value)             \
    apply(memattr_set_value) apply(bitmap_zero) apply(bitmap_set)                                 \
    apply(topology_get_type_filter) apply(topology_is_thissystem)                                 \
    apply(topology_export_xmlbuffer) apply(free_xmlbuffer) apply(shmem_topology_get_length)       \
    apply(shmem_topology_write) apply(shmem_topology_adopt)
// clang-format on

class HwlocLibrary {
  public:
    // The library, or null: `problem` says why.
    static const HwlocLibrary* get(std::string& problem);

    // Held by who discovers in this process, and around a fork whose child does (isolated.hpp).
    static std::mutex& calls();

    // While it exists, a first topology doesn't bring in hwloc's plug-ins for graphics and
    // accelerators: they load those libraries into the program that asks, with threads, memory and
    // seconds, for what is not asked. That holds where the program has one thread and does not name
    // plug-ins itself; else they are loaded. Those for PCI and XML are never kept out.
    class WithoutPlugins {
      public:
        WithoutPlugins();
        ~WithoutPlugins();
        WithoutPlugins(const WithoutPlugins&) = delete;
        WithoutPlugins& operator=(const WithoutPlugins&) = delete;

      private:
        bool is_set_;
    };

    // The version of hwloc's interface, which changes less often than the library: "2.8" for hwloc
    // 2.9.
    std::string version() const;

// NOLINTNEXTLINE(bugprone-macro-parentheses): it declares the name
#define WARREN_HWLOC_MEMBER(name) decltype(&hwloc_##name) name = nullptr;
    WARREN_HWLOC_FUNCTIONS(WARREN_HWLOC_MEMBER)
#undef WARREN_HWLOC_MEMBER

  private:
    HwlocLibrary();

    std::string problem_;
};

} // namespace warren::discovery
