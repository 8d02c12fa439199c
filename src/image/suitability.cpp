#include "image/suitability.hpp"

#include <algorithm>
#include <set>

#include "image/architecture.hpp"
#include "image/relocation.hpp"
#include "warren/image.h"

namespace warren::image {

namespace {

void add_refusal(std::vector<Finding>& findings, std::string what, std::string remedy) {
    findings.push_back({Weight::refused, std::move(what), std::move(remedy)});
}

void examine_kind(const ElfFile& file, std::vector<Finding>& findings) {
    if (!architecture::has_images) {
        add_refusal(findings, "private copies are known on x86-64 only, not on this processor",
                    "run it with ranks that are processes");
        return;
    }
    if (file.header().e_type == ET_EXEC) {
        if (file.has_interpreter()) {
            add_refusal(findings,
                        "it has fixed addresses, which only one copy in a process can have",
                        "compile it with -fPIE (or -fPIC) and link it with -pie");
        } else {
            add_refusal(findings, "it is linked statically, with a C library of its own",
                        "link it without -static, compiled with -fPIE, with -pie");
        }
        return;
    }
    if (file.dynamic().program && !file.has_interpreter()) {
        add_refusal(findings, "it is linked statically, with a C library of its own",
                    "link it without -static-pie");
    } else if (file.dynamic().address == 0) {
        add_refusal(findings, "it has no dynamic section: nothing says how to relocate it",
                    "link it as a program (-pie) or library (-shared)");
    }
}

void examine_relocations(const ElfFile& file, std::vector<Finding>& findings) {
    if (Error error = check_relocation_places(file)) {
        ErrorRecord* record = error.take();
        // The sentence begins with the path, which the caller says.
        const std::string path = file.path() + " ";
        std::string what = record->text;
        delete record;
        add_refusal(findings, what.starts_with(path) ? what.substr(path.size()) : what, "");
        return;
    }
    if (file.dynamic().text_relocations || has_text_relocations(file)) {
        add_refusal(findings, "it has text relocations: its code would not be shared by copies",
                    "compile all of it with -fPIC (libraries) or -fPIE (programs)");
    }
    char text[32];
    std::set<std::string> unsupported;
    for_each_relocation(file, [&](const Elf64_Rela& relocation) {
        const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info));
        if (architecture::relocation_kind(type) == architecture::RelocationKind::unsupported) {
            unsupported.insert(architecture::relocation_name(type, text));
        }
    });
    for (const std::string& name : unsupported) {
        add_refusal(findings, "it has relocations of type " + name + ", which are not supported",
                    "compile all of it with -fPIC or -fPIE");
    }
}

void examine_threads(const ElfFile& file, std::vector<Finding>& findings) {
    const TlsSegment& tls = file.tls();
    constexpr std::uint64_t room = reserve_bytes - reserve_head_bytes;
    if (tls.memory_bytes > room) {
        add_refusal(findings,
                    "its thread-local variables take " + std::to_string(tls.memory_bytes) +
                        " bytes, more than the " + std::to_string(room) +
                        " that all modules of a thread share",
                    "allocate large thread-local arrays at run time");
    }
    if (tls.alignment > architecture::tls_alignment_limit) {
        add_refusal(findings,
                    "its thread-local variables are aligned to " + std::to_string(tls.alignment) +
                        " bytes, more than the " +
                        std::to_string(architecture::tls_alignment_limit) + " of a thread",
                    "align them to 64 bytes at most");
    }
    if (file.executable_stack()) {
        add_refusal(findings, "it wants an executable stack, which threads don't have",
                    "link it with -z noexecstack, and mark assembler files with .note.GNU-stack");
    }
}

} // namespace

std::vector<Finding> examine(const ElfFile& file) {
    std::vector<Finding> findings;
    examine_kind(file, findings);
    if (findings.empty()) {
        examine_relocations(file, findings);
        examine_threads(file, findings);
    }
    std::stable_sort(
        findings.begin(), findings.end(),
        [](const Finding& one, const Finding& other) { return one.weight < other.weight; });
    return findings;
}

Error check_private(const ElfFile& file) {
    for (const Finding& finding : examine(file)) {
        if (finding.weight == Weight::refused) {
            return fail(WARREN_IMAGE_ERR_UNSUITABLE, "%s can't be a private image: %s%s%s",
                        file.path().c_str(), finding.what.c_str(),
                        finding.remedy.empty() ? "" : "; ", finding.remedy.c_str());
        }
    }
    return {};
}

} // namespace warren::image
