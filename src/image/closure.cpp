#include "image/closure.hpp"

#include <algorithm>

namespace warren::image {

namespace {

bool is_named(const ElfFile& file, const std::string& name) {
    return file.name() == name || file.path() == name;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

Error add_preloaded(const ElfFile& root, const Sharing& sharing, Closure& closure) {
    for (const std::string& name : sharing.preloaded) {
        FilePointer file;
        if (Error error = find_library(name, {&root}, file)) {
            return error;
        }
        const auto is_file = [&](const Closure::Member& member) {
            return member.file->identity() == file->identity();
        };
        if (std::none_of(closure.members.begin(), closure.members.end(), is_file)) {
            closure.members.front().needs.push_back(closure.members.size());
            closure.members.push_back({file, {}});
        }
    }
    closure.preloaded = closure.members.size() - 1;
    return {};
}

} // namespace

bool Sharing::is_shared(const std::string& name) const {
    return !has(private_, name) && (has(shared, name) || is_system_library(name));
}

Error find_closure(const FilePointer& root, const Sharing& sharing,
                   const std::vector<FilePointer>& present, Closure& closure) {
    std::vector<std::size_t> asked_by{0}; // per member
    closure.members.push_back({root, {}});
    if (present.empty()) {
        if (Error error = add_preloaded(*root, sharing, closure)) {
            return error;
        }
        asked_by.resize(closure.members.size());
    }
    const auto number_of = [&](auto&& matches) {
        std::size_t number = 0;
        for (const FilePointer& file : present) {
            if (matches(*file)) {
                return number;
            }
            ++number;
        }
        for (const Closure::Member& member : closure.members) {
            if (matches(*member.file)) {
                return number;
            }
            ++number;
        }
        return number;
    };
    for (std::size_t at = 0; at < closure.members.size(); ++at) {
        std::vector<const ElfFile*> chain;
        for (std::size_t link = at;; link = asked_by[link]) {
            chain.push_back(closure.members[link].file.get());
            if (link == 0) {
                break;
            }
        }
        const FilePointer user = closure.members[at].file;
        for (const char* needed : user->dynamic().needed) {
            const std::string name = needed;
            if (sharing.is_shared(name)) {
                if (!has(closure.shared, name)) {
                    closure.shared.push_back(name);
                }
                continue;
            }
            std::size_t number =
                number_of([&](const ElfFile& file) { return is_named(file, name); });
            if (number == present.size() + closure.members.size()) {
                FilePointer file;
                if (Error error = find_library(name, chain, file)) {
                    return error;
                }
                number = number_of(
                    [&](const ElfFile& other) { return other.identity() == file->identity(); });
                if (number == present.size() + closure.members.size()) {
                    closure.members.push_back({file, {}});
                    asked_by.push_back(at);
                }
            }
            closure.members[at].needs.push_back(number);
        }
    }
    return {};
}

} // namespace warren::image
