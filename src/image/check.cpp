#include "image/check.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "image/architecture.hpp"
#include "image/libc/stateful_calls.hpp"
#include "image/libc/substitutes.hpp"
#include "image/relocation.hpp"
#include "warren/image.h"

namespace warren::image {

namespace {

class Check {
  public:
    explicit Check(std::vector<ProgramFinding>& findings) : findings_(findings) {}

    void add(const ElfFile& file, Weight weight, std::string what, std::string remedy) {
        findings_.push_back({file.path(), {weight, std::move(what), std::move(remedy)}});
    }

    void file(const ElfFile& file, const Closure& closure) {
        for (Finding& finding : examine(file)) {
            findings_.push_back({file.path(), std::move(finding)});
        }
        if (!file.name().starts_with("libmpi_abi.so")) { // Warren's, which knows of images
            symbols(file);
        }
        variables(file, closure);
    }

    // Bytes of all private modules' thread-local variables together, per thread.
    void threads(const Closure& closure) {
        std::uint64_t bytes = 0;
        for (const Closure::Member& member : closure.members) {
            const TlsSegment& tls = member.file->tls();
            bytes += tls.memory_bytes == 0 ? 0 : tls.memory_bytes + tls.alignment - 1;
        }
        constexpr std::uint64_t room = reserve_bytes - reserve_head_bytes;
        if (bytes > room) {
            add(*closure.members.front().file, Weight::refused,
                "its thread-local variables and its libraries' take " + std::to_string(bytes) +
                    " bytes, more than the " + std::to_string(room) +
                    " that all modules of a thread share",
                "allocate large thread-local arrays at run time");
        }
    }

    void shared_libraries(const Closure& closure) {
        for (const std::string& name : closure.shared) {
            if (name.starts_with("libasan.") || name.starts_with("libtsan.") ||
                name.starts_with("liblsan.") || name.starts_with("libhwasan.")) {
                add(*closure.members.front().file, Weight::refused,
                    "it is instrumented by a sanitizer (" + name +
                        "), which must be the first of a process",
                    "build it without -fsanitize");
            }
        }
    }

  private:
    // Variables of the C library that are no image's own. One that the program has a copy of is not
    // the one that the C library's functions use.
    void variables(const ElfFile& file, const Closure& closure) {
        std::set<std::string> copied;
        for_each_relocation(file, [&](const Elf64_Rela& relocation) {
            const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info));
            if (architecture::relocation_kind(type) == architecture::RelocationKind::copy) {
                const auto index = static_cast<std::uint32_t>(ELF64_R_SYM(relocation.r_info));
                copied.insert(file.symbols().name(index));
            }
        });
        for (std::uint32_t index = 1; index < file.symbols().count(); ++index) {
            const std::string name = file.symbols().name(index);
            const bool is_copy = copied.contains(name);
            const char* state = shared_variable_state_of(name.c_str());
            if (state == nullptr || defines_other(closure, file, name) ||
                (file.symbols().symbol(index).st_shndx != SHN_UNDEF && !is_copy)) {
                continue;
            }
            if (is_copy) {
                add(file, Weight::refused,
                    "it has a copy of the C library's variable " + name + " (" + state +
                        "), which an image can't have",
                    "do without it");
            } else {
                add(file, Weight::changes,
                    "shared by all images: the variable " + name + ", " + state, "");
            }
        }
    }

    static bool defines_other(const Closure& closure, const ElfFile& file,
                              const std::string& name) {
        const SymbolName wanted(name.c_str(), nullptr);
        return std::any_of(
            closure.members.begin(), closure.members.end(), [&](const Closure::Member& member) {
                return member.file.get() != &file &&
                       member.file->symbols().find(wanted, SymbolUse::address) != nullptr;
            });
    }

    void symbols(const ElfFile& file) {
        const SymbolTable& symbols = file.symbols();
        std::map<std::string, std::string> users; // of each state, the functions
        std::string refused;
        bool allocates = false;
        for (std::uint32_t index = 1; index < symbols.count(); ++index) {
            const Elf64_Sym& symbol = symbols.symbol(index);
            const char* name = symbols.name(index);
            if (symbol.st_shndx != SHN_UNDEF) {
                allocates |=
                    std::strcmp(name, "malloc") == 0 && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL;
            } else if (is_refused_call(name)) {
                refused += (refused.empty() ? "" : ", ") + std::string(name);
            } else if (const char* state = shared_state_of(name)) {
                std::string& functions = users[state];
                functions += (functions.empty() ? "" : ", ") + std::string(name);
            }
        }
        if (!refused.empty()) {
            add(file, Weight::changes, refused + " return an error: they are for all of a process",
                "do without them");
        }
        for (const auto& [state, functions] : users) {
            std::string what = "shared by all images: " + state + " (";
            what.append(functions).append(")");
            add(file, Weight::changes, std::move(what), "");
        }
        if (allocates) {
            add(file, Weight::changes, own_allocator, "link it without an allocator of its own");
        }
    }

    std::vector<ProgramFinding>& findings_;
};

// One for each segment and each gap between two, one more for what is zero and for what is
// read-only after relocation.
std::uint64_t mappings_of(const ElfFile& file) {
    std::uint64_t count = 0;
    std::uint64_t end = page_down(file.lowest());
    for (const Segment& segment : file.segments()) {
        const std::uint64_t file_end = page_up(segment.address + segment.file_bytes);
        count += page_down(segment.address) > end ? 2 : 1;
        end = page_up(segment.address + segment.memory_bytes);
        count += segment.file_bytes != 0 && end > file_end ? 1 : 0;
    }
    return count + (file.relro().bytes != 0 ? 1 : 0);
}

} // namespace

std::uint64_t mappings_of_program(const std::string& path, const Sharing& sharing) {
    FilePointer root;
    Closure closure;
    Error error = open_file(path, root);
    if (!error) {
        error = find_closure(root, sharing, {}, closure);
    }
    if (error) {
        error.drop();
        return 0;
    }
    std::uint64_t count = 0;
    for (const Closure::Member& member : closure.members) {
        count += mappings_of(*member.file);
    }
    return count;
}

std::string lack_of_mappings(std::uint64_t mappings) {
    std::uint64_t limit = 0;
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/sys/vm/max_map_count", "re"),
                                                     std::fclose);
    if (file == nullptr || std::fscanf(file.get(), "%" SCNu64, &limit) != 1 || mappings <= limit) {
        return "";
    }
    return "they take " + std::to_string(mappings) + " mappings of memory, more than the " +
           std::to_string(limit) + " of a process: raise the limit (sysctl -w vm.max_map_count=" +
           std::to_string(2 * mappings) + "), or have fewer ranks";
}

Error check_program(const std::string& path, const Sharing& sharing,
                    std::vector<ProgramFinding>& findings) {
    FilePointer root;
    Closure closure;
    Error error = open_file(path, root);
    Check check(findings);
    if (root != nullptr && !error) {
        error = find_closure(root, sharing, {}, closure);
        for (const Closure::Member& member : closure.members) {
            check.file(*member.file, closure);
        }
        check.threads(closure);
        check.shared_libraries(closure);
    }
    if (error) { // a file that can't be read, or of a library that is not found
        ErrorRecord* record = error.take();
        findings.push_back({path, {Weight::refused, record->text, ""}});
        error = Error::adopt(record);
    }
    std::stable_sort(findings.begin(), findings.end(),
                     [](const ProgramFinding& one, const ProgramFinding& other) {
                         return one.finding.weight < other.finding.weight;
                     });
    if (!error && !findings.empty() && findings.front().finding.weight == Weight::refused) {
        const ProgramFinding& worst = findings.front();
        error = fail(WARREN_IMAGE_ERR_UNSUITABLE, "%s can't be a private image: %s",
                     worst.file.c_str(), worst.finding.what.c_str());
    }
    return error;
}

} // namespace warren::image
