#include "image/elf_file.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/architecture.hpp"
#include "image/open_file.hpp"
#include "warren/image.h"

namespace warren::image {

namespace {

// Linkers make about a dozen; what has more is damaged.
constexpr std::uint32_t program_header_limit = 64;
// The most that one copy may reserve of the address space (47 bits on the machines of today).
constexpr std::uint64_t span_limit = std::uint64_t{1} << 42;
std::atomic<ElfFile::Keep> keep{nullptr};

// Larger than any page of the machine.
constexpr std::uint64_t alignment_limit = std::uint64_t{1} << 30;

const char* machine_name(unsigned machine) {
    switch (machine) {
    case EM_386:
        return "32-bit x86";
    case EM_X86_64:
        return "x86-64";
    case EM_AARCH64:
        return "AArch64";
    case EM_PPC64:
        return "64-bit PowerPC";
    case EM_RISCV:
        return "RISC-V";
    case EM_S390:
        return "S/390";
    case EM_ARM:
        return "32-bit ARM";
    default:
        return "another machine";
    }
}

} // namespace

FileIdentity identity_of(const struct stat& status) {
    return {status.st_dev, status.st_ino, status.st_size,
            std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

ElfFile::~ElfFile() {
    if (owns_bytes_ && !bytes_.empty()) {
        munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }
    // (A child of fork may have closed it, and opened something else.)
    struct stat status {};
    const Keep keeps = keep.load(std::memory_order_relaxed);
    if (kept_ >= 0 && keeps != nullptr && fstat(kept_, &status) == 0 &&
        status.st_dev == identity_.device && status.st_ino == identity_.inode) {
        keeps(kept_, false);
    }
}

void ElfFile::keep_descriptors(Keep said) {
    keep.store(said, std::memory_order_relaxed);
}

int ElfFile::keep_descriptor(int opened) {
    // Programs may want a certain low number.
    constexpr int first_kept = 256;
    const Keep keeps = keep.load(std::memory_order_relaxed);
    const int copy =
        keeps != nullptr ? keeps(opened, true) : ::fcntl(opened, F_DUPFD_CLOEXEC, first_kept);
    if (copy < 0) {
        return opened;
    }
    ::close(opened);
    return copy;
}

void ElfFile::drop_descriptor(int kept) {
    const Keep keeps = keep.load(std::memory_order_relaxed);
    if (keeps != nullptr) {
        keeps(kept, false);
    } else {
        ::close(kept);
    }
}

namespace {

std::string absolute(const std::string& path) {
    char folder[PATH_MAX];
    return path[0] == '/' || getcwd(folder, sizeof folder) == nullptr
               ? path
               : std::string(folder) + "/" + path;
}

} // namespace

bool ElfFile::is_open_as(int descriptor) const {
    struct stat status {};
    return descriptor >= 0 && fstat(descriptor, &status) == 0 && identity_of(status) == identity_;
}

Error ElfFile::open_again(OpenFile& opened, int& descriptor) const {
    if (is_open_as(kept_)) {
        descriptor = kept_;
        return {};
    }
    opened.open(location_.c_str());
    descriptor = opened.number();
    if (descriptor < 0) {
        return fail(WARREN_IMAGE_ERR_FILE, "%s: %s", path_.c_str(), std::strerror(errno));
    }
    if (!is_open_as(descriptor)) {
        return fail(WARREN_IMAGE_ERR_FILE, "%s has changed since it was read", path_.c_str());
    }
    return {};
}

Error ElfFile::open_and_keep(OpenFile& opened, int& descriptor) {
    const Keep keeps = keep.load(std::memory_order_relaxed);
    // Another rank may close the number, and open something else, before there is a copy.
    constexpr int attempts = 5;
    for (int attempt = 0; attempt < attempts; ++attempt) {
        opened.open(path_.c_str());
        descriptor = opened.number();
        if (descriptor < 0 || keeps == nullptr) {
            break;
        }
        kept_ = keeps(descriptor, true);
        struct stat there {};
        const bool exists = stat(path_.c_str(), &there) == 0;
        const auto is_there = [&](int number) {
            struct stat status {};
            return exists && fstat(number, &status) == 0 && status.st_dev == there.st_dev &&
                   status.st_ino == there.st_ino;
        };
        if (kept_ < 0 && is_there(descriptor)) {
            break; // there is no room for a copy
        }
        // A descriptor that is another rank's by now stays open.
        if (is_there(descriptor)) {
            opened.close();
        } else {
            opened.forget();
        }
        descriptor = kept_;
        if (kept_ >= 0 && is_there(kept_)) {
            break;
        }
        if (kept_ >= 0) {
            kept_ = keeps(kept_, false);
        }
        descriptor = -1;
    }
    if (descriptor < 0 && keeps != nullptr) { // without keeping it
        opened.forget();
        opened.open(path_.c_str());
        descriptor = opened.number();
    }
    struct stat status {};
    if (descriptor < 0 || fstat(descriptor, &status) != 0) {
        return fail(WARREN_IMAGE_ERR_FILE, "%s: %s", path_.c_str(), std::strerror(errno));
    }
    identity_ = identity_of(status);
    if (!S_ISREG(status.st_mode)) {
        return fail(WARREN_IMAGE_ERR_FILE, "%s is no regular file", path_.c_str());
    }
    return {};
}

Error ElfFile::open(const std::string& path, std::shared_ptr<const ElfFile>& file) {
    std::shared_ptr<ElfFile> made(new ElfFile);
    made->path_ = path;
    made->location_ = absolute(path);
    OpenFile opened;
    int descriptor;
    if (Error error = made->open_and_keep(opened, descriptor)) {
        return error;
    }
    const std::size_t bytes = static_cast<std::size_t>(made->identity_.bytes);
    if (bytes < sizeof(Elf64_Ehdr)) {
        return fail(WARREN_IMAGE_ERR_DAMAGED, "%s is no program: it has %zu bytes only",
                    path.c_str(), bytes);
    }
    void* view = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (view == MAP_FAILED) {
        return fail(WARREN_IMAGE_ERR_FILE, "%s: mmap: %s", path.c_str(), std::strerror(errno));
    }
    made->owns_bytes_ = true;
    made->bytes_ = {static_cast<const std::byte*>(view), bytes};
    if (Error error = made->parse()) {
        return error;
    }
    file = std::move(made);
    return {};
}

Error ElfFile::read(const std::string& path, std::span<const std::byte> bytes,
                    std::shared_ptr<const ElfFile>& file) {
    std::shared_ptr<ElfFile> made(new ElfFile);
    made->path_ = path;
    made->bytes_ = bytes;
    if (Error error = made->parse()) {
        return error;
    }
    file = std::move(made);
    return {};
}

std::string ElfFile::name() const {
    return dynamic_.soname != nullptr ? dynamic_.soname : path_.substr(path_.rfind('/') + 1);
}

bool ElfFile::is_program() const {
    // Some libraries can be started too (libc says its version then): they have a soname.
    return dynamic_.program || (has_interpreter_ && dynamic_.soname == nullptr);
}

const Segment* ElfFile::segment_of(std::uint64_t address, std::uint64_t bytes) const {
    for (const Segment& segment : segments_) {
        if (address >= segment.address && address - segment.address <= segment.memory_bytes &&
            bytes <= segment.memory_bytes - (address - segment.address)) {
            return &segment;
        }
    }
    return nullptr;
}

std::uint64_t ElfFile::bytes_from(std::uint64_t address) const {
    for (const Segment& segment : segments_) {
        if (address >= segment.address && address - segment.address < segment.file_bytes) {
            return segment.file_bytes - (address - segment.address);
        }
    }
    return 0;
}

const std::byte* ElfFile::at(std::uint64_t address, std::uint64_t bytes) const {
    for (const Segment& segment : segments_) {
        if (address >= segment.address && address - segment.address <= segment.file_bytes &&
            bytes <= segment.file_bytes - (address - segment.address)) {
            return bytes_.data() + segment.offset + (address - segment.address);
        }
    }
    return nullptr;
}

Error ElfFile::parse() {
    if (Error error = parse_header()) {
        return error;
    }
    if (Error error = parse_program_headers()) {
        return error;
    }
    return parse_dynamic();
}

Error ElfFile::parse_header() {
    const char* path = path_.c_str();
    if (bytes_.size() < sizeof header_) {
        return fail(WARREN_IMAGE_ERR_DAMAGED, "%s is no program: it has %zu bytes only", path,
                    bytes_.size());
    }
    std::memcpy(&header_, bytes_.data(), sizeof header_);
    if (std::memcmp(header_.e_ident, "#!", 2) == 0) {
        return fail(WARREN_IMAGE_ERR_UNSUITABLE,
                    "%s is a script: name the program that interprets it, and the script as its "
                    "first argument",
                    path);
    }
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) {
        return fail(WARREN_IMAGE_ERR_DAMAGED, "%s is no program: it is no ELF file", path);
    }
    if (header_.e_ident[EI_CLASS] == ELFCLASS32) {
        return fail(WARREN_IMAGE_ERR_UNSUITABLE,
                    "%s is a 32-bit program: build it for 64 bits (without -m32)", path);
    }
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
        header_.e_ident[EI_VERSION] != EV_CURRENT || header_.e_version != EV_CURRENT) {
        return fail(WARREN_IMAGE_ERR_DAMAGED,
                    "%s is damaged: its ELF header is of no known class, byte order or version",
                    path);
    }
    if (header_.e_machine != architecture::elf_machine) {
        return fail(WARREN_IMAGE_ERR_UNSUITABLE, "%s is built for %s (ELF machine %u), this is %s",
                    path, machine_name(header_.e_machine), unsigned{header_.e_machine},
                    machine_name(architecture::elf_machine));
    }
    if (header_.e_type != ET_DYN && header_.e_type != ET_EXEC) {
        return fail(WARREN_IMAGE_ERR_UNSUITABLE, "%s is %s, neither a program nor a library", path,
                    header_.e_type == ET_REL    ? "an object file: link it"
                    : header_.e_type == ET_CORE ? "a memory dump"
                                                : "an ELF file of unknown type");
    }
    if (header_.e_phentsize != sizeof(Elf64_Phdr) || header_.e_phnum == 0 ||
        header_.e_phnum > program_header_limit) {
        return fail(WARREN_IMAGE_ERR_DAMAGED, "%s is damaged: %u program headers of %u bytes", path,
                    unsigned{header_.e_phnum}, unsigned{header_.e_phentsize});
    }
    return {};
}

Error ElfFile::parse_program_headers() {
    const char* path = path_.c_str();
    const std::uint64_t table_bytes = std::uint64_t{header_.e_phnum} * sizeof(Elf64_Phdr);
    if (header_.e_phoff > bytes_.size() || table_bytes > bytes_.size() - header_.e_phoff) {
        return fail(WARREN_IMAGE_ERR_DAMAGED, "%s is damaged: its program headers are cut off",
                    path);
    }
    program_headers_.resize(header_.e_phnum);
    std::memcpy(program_headers_.data(), bytes_.data() + header_.e_phoff, table_bytes);
    for (const Elf64_Phdr& header : program_headers_) {
        if (header.p_type == PT_LOAD) {
            if (Error error = add_segment(header)) {
                return error;
            }
        }
    }
    if (segments_.empty()) {
        return fail(WARREN_IMAGE_ERR_DAMAGED, "%s is damaged: nothing of it is to be loaded", path);
    }
    lowest_ = page_down(segments_.front().address);
    span_ = page_up(segments_.back().address + segments_.back().memory_bytes) - lowest_;
    if (span_ > span_limit) {
        return fail(WARREN_IMAGE_ERR_UNSUITABLE, "%s wants %llu bytes of address space", path,
                    static_cast<unsigned long long>(span_));
    }
    for (const Elf64_Phdr& header : program_headers_) {
        if (Error error = parse_special(header)) {
            return error;
        }
    }
    if (header_.e_entry != 0 && has_interpreter_) {
        return check_function("entry point", header_.e_entry);
    }
    return {};
}

Error ElfFile::add_segment(const Elf64_Phdr& header) {
    const auto damaged = [&](const char* what) {
        return fail(WARREN_IMAGE_ERR_DAMAGED, "%s is damaged: segment %zu %s", path_.c_str(),
                    segments_.size(), what);
    };
    if (header.p_filesz > header.p_memsz) {
        return damaged("is larger in the file than in memory");
    }
    if (header.p_offset > bytes_.size() || header.p_filesz > bytes_.size() - header.p_offset) {
        return damaged("is cut off");
    }
    if (header.p_vaddr >= span_limit * 2 || header.p_memsz >= span_limit * 2) {
        return damaged("has an impossible address");
    }
    if ((header.p_vaddr - header.p_offset) % page_bytes != 0) {
        return damaged("can't be mapped: its address and its place in the file differ in the page");
    }
    const std::uint64_t alignment = std::max(header.p_align, page_bytes);
    if (!std::has_single_bit(alignment) || alignment > alignment_limit) {
        return damaged("has an impossible alignment");
    }
    if (header.p_memsz == 0) {
        return {};
    }
    if (!segments_.empty() && page_down(header.p_vaddr) < page_up(segments_.back().address +
                                                                  segments_.back().memory_bytes)) {
        return damaged("overlaps the one before it");
    }
    const Segment segment{header.p_offset,
                          header.p_vaddr,
                          header.p_filesz,
                          header.p_memsz,
                          (header.p_flags & PF_R) != 0,
                          (header.p_flags & PF_W) != 0,
                          (header.p_flags & PF_X) != 0};
    if (segment.memory_bytes > segment.file_bytes && !segment.writable) {
        return damaged("has zeroed memory that can't be written");
    }
    alignment_ = std::max(alignment_, alignment);
    segments_.push_back(segment);
    return {};
}

Error ElfFile::parse_special(const Elf64_Phdr& header) {
    const auto damaged = [&](const char* what) {
        return fail(WARREN_IMAGE_ERR_DAMAGED, "%s is damaged: %s", path_.c_str(), what);
    };
    switch (header.p_type) {
    case PT_DYNAMIC:
        dynamic_range_ = {header.p_vaddr, header.p_filesz};
        return {};
    case PT_INTERP:
        has_interpreter_ = true;
        return {};
    case PT_GNU_STACK:
        executable_stack_ = (header.p_flags & PF_X) != 0;
        return {};
    case PT_GNU_EH_FRAME:
        unwind_table_ = header.p_vaddr;
        return at(header.p_vaddr, header.p_filesz) != nullptr
                   ? Error{}
                   : damaged("its unwind table is cut off");
    case PT_GNU_RELRO:
        relro_ = {header.p_vaddr, header.p_memsz};
        // Linkers round its end up to a page, which may be more than the segment has.
        return header.p_memsz == 0 || (segment_of(header.p_vaddr, 1) != nullptr &&
                                       header.p_vaddr - lowest_ <= span_ &&
                                       header.p_memsz <= span_ - (header.p_vaddr - lowest_))
                   ? Error{}
                   : damaged("what is to be protected after relocation is outside its segments");
    case PT_TLS:
        tls_ = {header.p_vaddr, header.p_filesz, header.p_memsz,
                std::max<std::uint64_t>(header.p_align, 1)};
        if (header.p_filesz > header.p_memsz || !std::has_single_bit(tls_.alignment) ||
            tls_.alignment > alignment_limit || header.p_memsz > span_limit ||
            (header.p_filesz > 0 && at(header.p_vaddr, header.p_filesz) == nullptr)) {
            return damaged("its thread-local variables are cut off");
        }
        if (header.p_vaddr % tls_.alignment != 0) {
            return damaged("its thread-local variables are not aligned");
        }
        return {};
    default:
        return {};
    }
}

} // namespace warren::image
