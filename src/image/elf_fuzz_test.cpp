// Damaged and hostile files: whatever their bytes, they are read or refused, and nothing beyond the
// file is looked at.
#include <array>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <sys/mman.h>

#include "image/elf_file.hpp"
#include "image/suitability.hpp"
#include "image/test_files.hpp"
#include "warren/image.h"

namespace warren::image {

namespace {

// Bytes between two pages that can't be touched: whoever looks beyond them crashes, in every build.
class GuardedBytes {
  public:
    explicit GuardedBytes(std::size_t bytes) {
        mapped_ = page_up(bytes) + 2 * page_bytes;
        base_ = static_cast<char*>(
            mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(base_ + page_bytes, page_up(bytes), PROT_READ | PROT_WRITE);
        // The end is at the page's end, but for what alignment takes.
        data_ = base_ + mapped_ - page_bytes - (bytes + 15) / 16 * 16;
    }
    GuardedBytes(const GuardedBytes&) = delete;
    GuardedBytes& operator=(const GuardedBytes&) = delete;
    ~GuardedBytes() { munmap(base_, mapped_); }

    char* data() { return data_; }
    std::span<const std::byte> bytes(std::size_t count) const {
        return {reinterpret_cast<const std::byte*>(data_), count};
    }

  private:
    std::size_t mapped_ = 0;
    char* base_ = nullptr;
    char* data_ = nullptr;
};

// Everything that loading asks of a file but running its code.
int use(const ElfFile& file) {
    Error error = check_private(file);
    const int outcome = error.error_class();
    error.drop();
    const SymbolTable& symbols = file.symbols();
    for (std::uint32_t index = 0; index < symbols.count() && index < 2000; ++index) {
        const SymbolName name(symbols.name(index), symbols.version(index));
        symbols.find(name, SymbolUse::call);
        symbols.find(name, SymbolUse::address);
    }
    symbols.find(SymbolName("main", nullptr), SymbolUse::call);
    symbols.covering(file.header().e_entry);
    return outcome;
}

struct Tally {
    std::array<int, 16> outcomes{};
    int accepted = 0;
};

void read_and_use(std::span<const std::byte> bytes, Tally& tally) {
    FilePointer file;
    Error error = ElfFile::read("damaged", bytes, file);
    if (error) {
        ++tally.outcomes[static_cast<std::size_t>(error.error_class())];
        error.drop();
        return;
    }
    ++tally.accepted;
    use(*file);
}

// Values that break arithmetic.
constexpr std::uint64_t hard_values[] = {0,
                                         1,
                                         7,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         0xffffffffffffffff,
                                         0xfffffffffffff000};

void damage(const std::string& name, int rounds) {
    const std::vector<char> original = contents(fixture(name));
    ASSERT_GT(original.size(), sizeof(Elf64_Ehdr));
    GuardedBytes memory(original.size());
    // The loader reads the start of the file, but for the dynamic section and its neighbours.
    FilePointer sound;
    std::memcpy(memory.data(), original.data(), original.size());
    ASSERT_FALSE(ElfFile::read(name, memory.bytes(original.size()), sound));
    const auto dynamic_offset = static_cast<std::size_t>(sound->at(sound->dynamic().address, 16) -
                                                         memory.bytes(original.size()).data());
    sound.reset();

    std::mt19937_64 random(20260101); // the same damage every time
    Tally tally;
    for (int round = 0; round < rounds; ++round) {
        std::memcpy(memory.data(), original.data(), original.size());
        for (std::uint64_t changes = random() % 4 + 1; changes > 0; --changes) {
            const std::size_t where = random() % 4;
            const std::size_t window = where == 0   ? sizeof(Elf64_Ehdr)
                                       : where == 1 ? 1024
                                       : where == 2 ? 512
                                                    : 8192;
            std::size_t offset = random() % window + (where == 2 ? dynamic_offset : 0);
            const std::size_t width = std::size_t{1} << random() % 4;
            offset = offset / width * width % (original.size() - 8);
            std::uint64_t value =
                random() % 2 == 0 ? random() : hard_values[random() % std::size(hard_values)];
            if (random() % 4 == 0) { // near what was there
                std::memcpy(&value, memory.data() + offset, width);
                value += random() % 64 - 32;
            }
            std::memcpy(memory.data() + offset, &value, width);
        }
        read_and_use(memory.bytes(original.size()), tally);
    }
    // Both have to happen, or the damage is too mild or too wild to find anything.
    EXPECT_GT(tally.accepted, rounds / 50);
    EXPECT_GT(tally.outcomes[WARREN_IMAGE_ERR_DAMAGED], rounds / 50);
}

TEST(DamagedFile, of_a_program_is_read_or_refused) {
    damage("plain", 200000);
}

TEST(DamagedFile, with_the_older_hash_table_is_read_or_refused) {
    damage("plain_old_hash", 100000);
}

TEST(DamagedFile, that_is_cut_off_anywhere_is_refused) {
    const std::vector<char> original = contents(fixture("plain"));
    FilePointer sound;
    ASSERT_FALSE(ElfFile::open(fixture("plain"), sound));
    const Segment& last = sound->segments().back();
    const std::size_t needed = last.offset + last.file_bytes;
    Tally tally;
    for (std::size_t bytes = 0; bytes < needed; bytes += 61) {
        GuardedBytes memory(bytes + 16); // mapped anew: the end is where the file's is
        std::memcpy(memory.data(), original.data(), bytes);
        read_and_use(memory.bytes(bytes), tally);
    }
    EXPECT_EQ(tally.accepted, 0);
}

} // namespace

} // namespace warren::image
