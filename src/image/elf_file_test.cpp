#include "image/elf_file.hpp"

#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "image/open_file.hpp"
#include "image/suitability.hpp"
#include "image/test_files.hpp"
#include "warren/image.h"

namespace warren::image {

namespace {

struct Outcome {
    int error_class = 0;
    std::string text;
};

// Opens a file and decides whether it can be private, as loading it does.
Outcome outcome_of(const FilePointer& file, Error error) {
    if (!error && file != nullptr) {
        error = check_private(*file);
    }
    Outcome outcome{error.error_class(), ""};
    if (ErrorRecord* record = error.take()) {
        outcome.text = record->text;
        delete record;
    }
    return outcome;
}

Outcome open_fixture(const std::string& name) {
    FilePointer file;
    Error error = ElfFile::open(fixture(name), file);
    return outcome_of(file, error);
}

// The fixture `plain`, changed before it is read.
Outcome read_changed(const std::function<void(std::vector<std::uint64_t>&, Elf64_Ehdr&)>& change) {
    const std::vector<char> bytes = contents(fixture("plain"));
    std::vector<std::uint64_t> words((bytes.size() + 15) / 16 * 2); // aligned
    std::memcpy(words.data(), bytes.data(), bytes.size());
    change(words, *reinterpret_cast<Elf64_Ehdr*>(words.data()));
    FilePointer file;
    Error error = ElfFile::read("changed", std::as_bytes(std::span(words)), file);
    return outcome_of(file, error);
}

#define EXPECT_REFUSED(outcome_expression, expected_class, part)                                   \
    do {                                                                                           \
        const Outcome outcome = outcome_expression;                                                \
        EXPECT_EQ(outcome.error_class, expected_class) << outcome.text;                            \
        EXPECT_NE(outcome.text.find(part), std::string::npos) << outcome.text;                     \
    } while (false)

TEST(ElfFile, describes_a_program) {
    FilePointer file;
    ASSERT_FALSE(ElfFile::open(fixture("plain"), file));
    EXPECT_TRUE(file->is_program());
    EXPECT_EQ(file->name(), "plain");
    ASSERT_FALSE(file->dynamic().needed.empty());
    EXPECT_STREQ(file->dynamic().needed.back(), "libc.so.6");
    EXPECT_GE(file->dynamic().init_array.bytes, 16U); // frame_dummy and ours
    EXPECT_EQ(file->symbols().find(SymbolName("printf", nullptr), SymbolUse::call), nullptr);
    EXPECT_EQ(file->tls().memory_bytes, 0U);
    EXPECT_FALSE(check_private(*file));
}

TEST(ElfFile, finds_symbols_with_and_without_a_version) {
    FilePointer file;
    FilePointer program;
    ASSERT_FALSE(ElfFile::open(fixture("plain"), program));
    ASSERT_FALSE(find_library("libc.so.6", {program.get()}, file));
    EXPECT_FALSE(file->is_program());
    const auto find = [&](const char* name, const char* version) {
        return file->symbols().find(SymbolName(name, version), SymbolUse::call);
    };
    ASSERT_NE(find("getenv", nullptr), nullptr);
    EXPECT_EQ(find("getenv", nullptr), find("getenv", "GLIBC_2.2.5"));
    EXPECT_EQ(find("getenv", "GLIBC_2.3"), nullptr);
    // Two versions of one name: the default one, and one that is for those who name it.
    ASSERT_NE(find("memcpy", "GLIBC_2.14"), nullptr);
    EXPECT_EQ(find("memcpy", nullptr), find("memcpy", "GLIBC_2.14"));
    ASSERT_NE(find("memcpy", "GLIBC_2.2.5"), nullptr);
    EXPECT_NE(find("memcpy", "GLIBC_2.2.5"), find("memcpy", "GLIBC_2.14"));
    EXPECT_EQ(find("no_such_function", nullptr), nullptr);
    const Elf64_Sym* function = find("getenv", nullptr);
    const Elf64_Sym* covering = file->symbols().covering(function->st_value + 1);
    ASSERT_NE(covering, nullptr);
    EXPECT_EQ(covering->st_value, function->st_value);
}

TEST(ElfFile, finds_symbols_by_the_older_hash_table) {
    FilePointer file;
    ASSERT_FALSE(ElfFile::open(fixture("plain_old_hash"), file));
    std::uint32_t found = 0;
    for (std::uint32_t index = 1; index < file->symbols().count(); ++index) {
        const Elf64_Sym& symbol = file->symbols().symbol(index);
        if (symbol.st_shndx != SHN_UNDEF) {
            EXPECT_EQ(file->symbols().find(SymbolName(file->symbols().name(index), nullptr),
                                           SymbolUse::call),
                      &symbol);
            ++found;
        } else {
            EXPECT_EQ(file->symbols().find(SymbolName(file->symbols().name(index), nullptr),
                                           SymbolUse::call),
                      nullptr);
        }
    }
    EXPECT_GT(found, 0U);
    EXPECT_GT(file->symbols().count(), 3U);
    EXPECT_FALSE(check_private(*file));
}

TEST(ElfFile, is_one_object_for_all_who_open_it) {
    FilePointer one;
    FilePointer other;
    ASSERT_FALSE(open_file(fixture("plain"), one));
    ASSERT_FALSE(open_file(fixture("plain"), other));
    EXPECT_EQ(one, other);
}

TEST(ElfFile, refuses_what_cannot_be_private_and_says_what_to_do) {
    EXPECT_REFUSED(open_fixture("fixed_address"), WARREN_IMAGE_ERR_UNSUITABLE, "-fPIE");
    EXPECT_REFUSED(open_fixture("static"), WARREN_IMAGE_ERR_UNSUITABLE, "without -static");
    EXPECT_REFUSED(open_fixture("static_pie"), WARREN_IMAGE_ERR_UNSUITABLE, "-static-pie");
    EXPECT_REFUSED(open_fixture("executable_stack"), WARREN_IMAGE_ERR_UNSUITABLE, "noexecstack");
    EXPECT_REFUSED(open_fixture("large_tls"), WARREN_IMAGE_ERR_UNSUITABLE, "100000 bytes");
    EXPECT_REFUSED(open_fixture("libtext_relocations.so"), WARREN_IMAGE_ERR_UNSUITABLE,
                   "text relocations");
    EXPECT_REFUSED(open_fixture("libstrange_relocation.so"), WARREN_IMAGE_ERR_UNSUITABLE,
                   "R_X86_64_PC64");
}

TEST(ElfFile, refuses_other_kinds_of_files) {
    EXPECT_REFUSED(open_fixture("not_there"), WARREN_IMAGE_ERR_FILE, "No such file");
    EXPECT_REFUSED(open_fixture(""), WARREN_IMAGE_ERR_FILE, "no regular file");
    const std::string script = temporary_file("#!/bin/sh\n" + std::string(100, '#'));
    const std::string text = temporary_file(std::string(100, 'x'));
    const std::string nothing = temporary_file("");
    FilePointer file;
    EXPECT_REFUSED(outcome_of(file, ElfFile::open(script, file)), WARREN_IMAGE_ERR_UNSUITABLE,
                   "script");
    EXPECT_REFUSED(outcome_of(file, ElfFile::open(text, file)), WARREN_IMAGE_ERR_DAMAGED,
                   "no ELF file");
    EXPECT_REFUSED(outcome_of(file, ElfFile::open(nothing, file)), WARREN_IMAGE_ERR_DAMAGED,
                   "0 bytes");
}

TEST(ElfFile, refuses_damaged_headers_with_the_reason) {
    using Words = std::vector<std::uint64_t>;
    EXPECT_REFUSED(
        read_changed([](Words&, Elf64_Ehdr& header) { header.e_ident[EI_CLASS] = ELFCLASS32; }),
        WARREN_IMAGE_ERR_UNSUITABLE, "32-bit");
    EXPECT_REFUSED(read_changed([](Words&, Elf64_Ehdr& header) { header.e_machine = EM_AARCH64; }),
                   WARREN_IMAGE_ERR_UNSUITABLE, "AArch64");
    EXPECT_REFUSED(
        read_changed([](Words&, Elf64_Ehdr& header) { header.e_ident[EI_DATA] = ELFDATA2MSB; }),
        WARREN_IMAGE_ERR_DAMAGED, "byte order");
    EXPECT_REFUSED(read_changed([](Words&, Elf64_Ehdr& header) { header.e_type = ET_CORE; }),
                   WARREN_IMAGE_ERR_UNSUITABLE, "memory dump");
    EXPECT_REFUSED(read_changed([](Words&, Elf64_Ehdr& header) { header.e_phnum = 60000; }),
                   WARREN_IMAGE_ERR_DAMAGED, "60000 program headers");
    EXPECT_REFUSED(read_changed([](Words&, Elf64_Ehdr& header) { header.e_phoff = ~0ULL - 8; }),
                   WARREN_IMAGE_ERR_DAMAGED, "cut off");
    EXPECT_REFUSED(read_changed([](Words&, Elf64_Ehdr& header) { header.e_entry = 8; }),
                   WARREN_IMAGE_ERR_DAMAGED, "entry point");
    EXPECT_REFUSED(read_changed([](Words& words, Elf64_Ehdr&) { words.resize(64); }),
                   WARREN_IMAGE_ERR_DAMAGED, "cut off");
}

int kept_descriptor = -1;

int keep_one(int descriptor, bool kept) {
    EXPECT_EQ(kept_descriptor, kept ? -1 : descriptor);
    if (!kept) {
        close(descriptor);
    }
    return kept_descriptor = kept ? fcntl(descriptor, F_DUPFD_CLOEXEC, 100) : -1;
}

// Another file takes the number before there is a copy.
std::vector<int> others;

int keep_late(int descriptor, bool kept) {
    static int times = 0;
    if (kept && times++ < 3) {
        close(descriptor);
        if (times > 1) {
            EXPECT_EQ(open("/dev/null", O_RDONLY | O_CLOEXEC), descriptor);
            others.push_back(descriptor);
        }
    }
    const int copy = kept ? fcntl(descriptor, F_DUPFD_CLOEXEC, 100) : -1;
    if (!kept) {
        close(descriptor);
    }
    return copy;
}

TEST(ElfFile, keeps_a_descriptor_where_it_is_told_to) {
    ElfFile::keep_descriptors(keep_one);
    {
        FilePointer file;
        ASSERT_FALSE(ElfFile::open("/proc/self/exe", file));
        ASSERT_GE(kept_descriptor, 100);
        OpenFile opened;
        int descriptor = -1;
        ASSERT_FALSE(file->open_again(opened, descriptor));
        EXPECT_EQ(descriptor, kept_descriptor);
        EXPECT_EQ(opened.number(), -1);
        // As in a child of fork that closes everything and opens something else.
        close(kept_descriptor);
        ASSERT_FALSE(file->open_again(opened, descriptor));
        EXPECT_EQ(descriptor, opened.number());
        const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
        ASSERT_EQ(dup2(other, kept_descriptor), kept_descriptor);
        close(other);
    }
    EXPECT_NE(fcntl(kept_descriptor, F_GETFD), -1); // not the file's
    close(kept_descriptor);
    kept_descriptor = -1;
    for (const char* path : {"/", "/dev/null", "/proc/self/maps"}) {
        FilePointer none;
        Error error = ElfFile::open(path, none);
        EXPECT_TRUE(error);
        error.drop();
        EXPECT_EQ(kept_descriptor, -1);
        EXPECT_EQ(fcntl(100, F_GETFD), -1);
    }
    ElfFile::keep_descriptors(keep_late);
    {
        FilePointer file;
        ASSERT_FALSE(ElfFile::open("/proc/self/exe", file));
        EXPECT_EQ(fcntl(101, F_GETFD), -1);
    }
    EXPECT_EQ(fcntl(100, F_GETFD), -1);
    EXPECT_EQ(others.size(), 2U);
    for (const int other : others) {
        EXPECT_EQ(close(other), 0);
    }
    ElfFile::keep_descriptors(nullptr);
}

} // namespace

} // namespace warren::image
