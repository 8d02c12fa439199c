// The CRC-32 of zlib and gzip: it tells whether a file of a recording holds what was written
// (`files` in process.json). It takes eight bytes at a time, about a nanosecond per byte, so that
// writers inside a recorded program can compute it as they write. Plain data without system calls.
// Thread rule: one thread per object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace warren::locality {

using ChecksumTables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr ChecksumTables make_checksum_tables() {
    constexpr std::uint32_t polynomial = 0xEDB88320U; // of IEEE 802.3, its bits reversed
    ChecksumTables made{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t sum = byte;
        for (unsigned bit = 0; bit < 8; ++bit) {
            sum = sum >> 1 ^ ((sum & 1U) != 0 ? polynomial : 0U);
        }
        made[0][byte] = sum;
    }
    // Row n: the byte with n zero bytes behind it.
    for (std::size_t row = 1; row < made.size(); ++row) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t before = made[row - 1][byte];
            made[row][byte] = made[0][before & 0xFFU] ^ before >> 8;
        }
    }
    return made;
}

class Checksum {
  public:
    void add(const void* data, std::size_t bytes) {
        const auto* at = static_cast<const unsigned char*>(data);
        std::uint32_t sum = ~value_;
        for (; bytes >= 8; bytes -= 8, at += 8) {
            std::uint32_t low = 0;
            std::uint32_t high = 0;
            std::memcpy(&low, at, sizeof low);
            std::memcpy(&high, at + sizeof low, sizeof high);
            low ^= sum;
            sum = 0;
            for (unsigned byte = 0; byte < 4; ++byte) {
                sum ^= tables[7 - byte][low >> (8 * byte) & 0xFFU];
                sum ^= tables[3 - byte][high >> (8 * byte) & 0xFFU];
            }
        }
        for (; bytes > 0; --bytes, ++at) {
            sum = tables[0][(sum ^ *at) & 0xFFU] ^ sum >> 8;
        }
        value_ = ~sum;
    }
    // The checksum of all bytes until now; 0 if there are none.
    std::uint32_t value() const { return value_; }

  private:
    static constexpr ChecksumTables tables = make_checksum_tables();

    std::uint32_t value_ = 0;
};

} // namespace warren::locality
