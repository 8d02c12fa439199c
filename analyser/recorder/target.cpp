#include "analyser/recorder/target.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace warren::locality {

namespace {

constexpr int other_error = 16;      // MPI_ERR_OTHER
constexpr int most_interpreters = 5; // as the kernel

bool is_program(const std::string& path) {
    struct stat about {};
    return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
           access(path.c_str(), X_OK) == 0;
}

Error check_elf(const std::string& path, std::ifstream& file, const Elf64_Ehdr& header) {
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_machine != EM_X86_64) {
        return fail(other_error, "%s is a program for another kind of processor than x86-64",
                    path.c_str());
    }
    if (header.e_phentsize != sizeof(Elf64_Phdr)) {
        return fail(other_error, "%s is damaged: its program headers have %d bytes", path.c_str(),
                    header.e_phentsize);
    }
    bool loads_libraries = false;
    file.seekg(static_cast<std::streamoff>(header.e_phoff));
    for (unsigned index = 0; index < header.e_phnum; ++index) {
        Elf64_Phdr part{};
        if (!file.read(reinterpret_cast<char*>(&part), sizeof part)) {
            return fail(other_error, "%s is damaged: its program headers are cut off",
                        path.c_str());
        }
        loads_libraries = loads_libraries || part.p_type == PT_INTERP;
    }
    if (!loads_libraries) {
        return fail(other_error,
                    "%s is static: it loads no libraries, so its allocations can't be followed. "
                    "Link it without -static",
                    path.c_str());
    }
    return {};
}

Error check(const std::string& path, int depth) {
    struct stat about {};
    if (stat(path.c_str(), &about) != 0) {
        return fail(other_error, "%s: %s", path.c_str(), std::strerror(errno));
    }
    const bool other_user = (about.st_mode & S_ISUID) != 0 && about.st_uid != geteuid();
    const bool other_group = (about.st_mode & S_ISGID) != 0 && (about.st_mode & S_IXGRP) != 0 &&
                             about.st_gid != getegid();
    if (other_user || other_group ||
        getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
        return fail(other_error,
                    "%s runs with other privileges than its user's (setuid, setgid or file "
                    "capabilities): the system lets nobody watch it. Record a copy of it",
                    path.c_str());
    }
    std::ifstream file(path, std::ios::binary);
    Elf64_Ehdr header{};
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    const auto bytes = static_cast<std::size_t>(file.gcount());
    const auto* text = reinterpret_cast<const char*>(&header);
    if (bytes >= SELFMAG && std::memcmp(text, ELFMAG, SELFMAG) == 0) {
        if (bytes < sizeof header) {
            return fail(other_error, "%s is damaged: it ends within its header", path.c_str());
        }
        file.clear();
        return check_elf(path, file, header);
    }
    if (bytes >= 2 && text[0] == '#' && text[1] == '!' && depth < most_interpreters) {
        file.clear();
        file.seekg(2);
        std::string line;
        std::getline(file, line);
        const std::size_t begin = line.find_first_not_of(" \t");
        if (begin != std::string::npos) {
            return check(line.substr(begin, line.find_first_of(" \t\r", begin) - begin), depth + 1);
        }
    }
    if (bytes == 0) {
        return fail(other_error, "%s can't be read, or is empty", path.c_str());
    }
    return {}; // a script without a first line that says for what: the shell's
}

} // namespace

Error find_program(const std::string& name, std::string& path) {
    if (name.empty()) {
        return fail(other_error, "the name of the program is empty");
    }
    path = name;
    if (name.find('/') != std::string::npos) {
        if (is_program(name)) {
            return {};
        }
        const bool there = access(name.c_str(), F_OK) == 0;
        return fail(other_error, "%s %s", name.c_str(),
                    there ? "is no program that may be executed" : "does not exist");
    }
    const char* variable = std::getenv("PATH");
    const std::string folders = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
    for (std::size_t begin = 0; begin <= folders.size();) {
        const std::size_t end = std::min(folders.find(':', begin), folders.size());
        path = end == begin ? "." : folders.substr(begin, end - begin);
        path += '/';
        path += name;
        if (is_program(path)) {
            return {};
        }
        begin = end + 1;
    }
    return fail(other_error, "there is no program %s in PATH", name.c_str());
}

Error check_program(const std::string& path) {
    return check(path, 0);
}

} // namespace warren::locality
