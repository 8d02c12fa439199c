// Questions of unwinders and programs about modules by address or in turn: the system's answer, and
// the image's modules.

#include <cstring>

#include "image/address_table.hpp"
#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/module.hpp"

namespace warren::image {

namespace {

using Visit = int (*)(dl_phdr_info*, std::size_t, void*);

// Programs see by the counters that something has changed since they last asked.
struct Request {
    Visit visit;
    void* data;
    unsigned long long changes;
    unsigned long long added = 0;
    unsigned long long removed = 0;
    bool counts_only = false;
    bool passed_host = false;
};

int pass_on(dl_phdr_info* info, std::size_t bytes, void* pointer) {
    auto* asked = static_cast<Request*>(pointer);
    asked->added = info->dlpi_adds + asked->changes;
    asked->removed = info->dlpi_subs + asked->changes;
    if (asked->counts_only) {
        return 1;
    }
    if (!asked->passed_host) { // the host program, instead of which the image has its own
        asked->passed_host = true;
        return 0;
    }
    dl_phdr_info own = *info;
    own.dlpi_adds = asked->added;
    own.dlpi_subs = asked->removed;
    return asked->visit(&own, bytes < sizeof own ? bytes : sizeof own, asked->data);
}

int visit_module(const Module& module, const Request& request) {
    dl_phdr_info info{};
    const bool is_program = &module == module.image->program();
    info.dlpi_addr = reinterpret_cast<ElfW(Addr)>(module.base);
    info.dlpi_name = is_program ? "" : module.file->path().c_str();
    info.dlpi_phdr = module.file->program_headers().data();
    info.dlpi_phnum = static_cast<ElfW(Half)>(module.file->program_headers().size());
    info.dlpi_adds = request.added;
    info.dlpi_subs = request.removed;
    if (module.has_tls()) {
        info.dlpi_tls_data = architecture::thread_pointer() + module.tls_offset;
    }
    return request.visit(&info, sizeof info, request.data);
}

} // namespace

// The program without a name, the image's other modules, the system's but the host program.
int libc::dl_iterate_phdr(Visit visit, void* data) {
    const Image* image = current_image();
    const Module* program = image != nullptr ? image->program() : nullptr;
    Request request{visit, data, address_table().changes()};
    request.counts_only = true;
    ::dl_iterate_phdr(pass_on, &request);
    request.counts_only = false;
    request.passed_host = program == nullptr;
    int result = program != nullptr ? visit_module(*program, request) : 0;
    address_table().for_each([&](const Module& module) {
        if (result == 0 && module.image == image && &module != program) {
            result = visit_module(module, request);
        }
    });
    return result != 0 ? result : ::dl_iterate_phdr(pass_on, &request);
}

} // namespace warren::image

extern "C" [[gnu::visibility("default")]] int warren_image_find_object(void* address,
                                                                       dl_find_object* found) {
    using namespace warren::image;
    const Module* module = address_table().find(address);
    if (module == nullptr) {
        return host().functions.find_object(address, found);
    }
    if (module->file->unwind_table() == 0) {
        return -1;
    }
    std::memset(found, 0, sizeof *found);
    found->dlfo_map_start = module->start;
    found->dlfo_map_end = module->start + module->file->span();
    found->dlfo_link_map = const_cast<link_map*>(&module->link);
    found->dlfo_eh_frame = module->at(module->file->unwind_table());
    return 0;
}
