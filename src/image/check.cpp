#include "image/check.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "image/libc/stateful_calls.hpp"
#include "image/libc/substitutes.hpp"
#include "warren/image.h"

namespace warren::image {

namespace {

class Check {
  public:
    explicit Check(std::vector<ProgramFinding>& findings) : findings_(findings) {}

    void add(const ElfFile& file, Weight weight, std::string what, std::string mend) {
        findings_.push_back({file.path(), {weight, std::move(what), std::move(mend)}});
    }

    void file(const ElfFile& file) {
        for (Finding& finding : examine(file)) {
            findings_.push_back({file.path(), std::move(finding)});
        }
        symbols(file);
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
    void symbols(const ElfFile& file) {
        const SymbolTable& symbols = file.symbols();
        std::map<std::string, std::string> users; // of each state, the functions
        bool allocates = false;
        for (std::uint32_t index = 1; index < symbols.count(); ++index) {
            const Elf64_Sym& symbol = symbols.symbol(index);
            const char* name = symbols.name(index);
            if (symbol.st_shndx != SHN_UNDEF) {
                allocates |=
                    std::strcmp(name, "malloc") == 0 && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL;
            } else if (const char* state = find_substitute_function(name) == nullptr
                                               ? shared_state_of(name)
                                               : nullptr) {
                std::string& functions = users[state];
                functions += (functions.empty() ? "" : ", ") + std::string(name);
            }
        }
        for (const auto& [state, functions] : users) {
            std::string what = state + " is shared by all images (";
            what.append(functions).append(")");
            add(file, Weight::changes, std::move(what), "");
        }
        if (allocates) {
            add(file, Weight::changes, own_allocator, "link it without an allocator of its own");
        }
    }

    std::vector<ProgramFinding>& findings_;
};

} // namespace

Error check_program(const std::string& path, const Sharing& sharing,
                    std::vector<ProgramFinding>& findings) {
    FilePointer root;
    Closure closure;
    Error error = open_file(path, root);
    Check check(findings);
    if (root != nullptr && !error) {
        error = find_closure(root, sharing, {}, closure);
        for (const Closure::Member& member : closure.members) {
            check.file(*member.file);
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
