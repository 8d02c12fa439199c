#include "picture.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>

namespace {

using Bytes = std::vector<std::uint8_t>;

void append_big_endian(Bytes& bytes, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
        bytes.push_back(static_cast<std::uint8_t>(value >> shift));
    }
}

std::uint32_t crc32(const std::uint8_t* data, std::size_t size) {
    std::uint32_t crc = 0xFFFFFFFFu;
    for (std::size_t i = 0; i < size; ++i) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xEDB88320u : 0u);
        }
    }
    return ~crc;
}

std::uint32_t adler32(const Bytes& bytes) {
    std::uint32_t low = 1, high = 0;
    for (const std::uint8_t byte : bytes) {
        low = (low + byte) % 65521;
        high = (high + low) % 65521;
    }
    return high << 16 | low;
}

void append_chunk(Bytes& file, const char (&type)[5], const Bytes& content) {
    append_big_endian(file, static_cast<std::uint32_t>(content.size()));
    const std::size_t start = file.size();
    file.insert(file.end(), type, type + 4);
    file.insert(file.end(), content.begin(), content.end());
    append_big_endian(file, crc32(file.data() + start, file.size() - start));
}

// zlib's format (RFC 1950) around deflate's stored blocks (RFC 1951).
Bytes stored_stream(const Bytes& bytes) {
    constexpr std::size_t block_limit = 65535;
    Bytes stream{0x78, 0x01};
    for (std::size_t start = 0; start < bytes.size(); start += block_limit) {
        const std::size_t size = std::min(block_limit, bytes.size() - start);
        const bool last = start + size == bytes.size();
        for (const std::size_t value :
             {std::size_t{last}, size & 255, size >> 8, ~size & 255, (~size >> 8) & 255}) {
            stream.push_back(static_cast<std::uint8_t>(value));
        }
        const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(start);
        stream.insert(stream.end(), from, from + static_cast<std::ptrdiff_t>(size));
    }
    append_big_endian(stream, adler32(bytes));
    return stream;
}

} // namespace

std::array<Colour, 256> contour_palette() {
    constexpr std::array<Colour, 7> stops{{{18, 30, 80},
                                           {33, 102, 172},
                                           {120, 180, 214},
                                           {250, 244, 232},
                                           {244, 165, 110},
                                           {190, 40, 50},
                                           {90, 8, 38}}};
    std::array<Colour, 256> palette{};
    for (std::size_t index = 0; index < palette.size(); ++index) {
        const double position = static_cast<double>(index) * (stops.size() - 1) / 255.0;
        const std::size_t left =
            std::min<std::size_t>(static_cast<std::size_t>(position), stops.size() - 2);
        const double share = position - static_cast<double>(left);
        const double shade = index % 16 == 8 ? 0.62 : 1.0;
        const auto mix = [&](std::uint8_t a, std::uint8_t b) {
            return static_cast<std::uint8_t>(shade * (a + share * (b - a)));
        };
        const Colour &a = stops[left], &b = stops[left + 1];
        palette[index] = {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
    }
    return palette;
}

bool write_png(const std::string& path, int width, int height, const Bytes& pixels,
               const std::array<Colour, 256>& palette) {
    Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    Bytes header;
    append_big_endian(header, static_cast<std::uint32_t>(width));
    append_big_endian(header, static_cast<std::uint32_t>(height));
    header.insert(header.end(), {8, 3, 0, 0, 0}); // 8 bits, by palette
    append_chunk(file, "IHDR", header);
    Bytes colours;
    for (const Colour& colour : palette) {
        colours.insert(colours.end(), {colour.red, colour.green, colour.blue});
    }
    append_chunk(file, "PLTE", colours);
    Bytes lines;
    for (int y = 0; y < height; ++y) {
        lines.push_back(0); // no filter
        const auto from = pixels.begin() + static_cast<std::ptrdiff_t>(y) * width;
        lines.insert(lines.end(), from, from + width);
    }
    append_chunk(file, "IDAT", stored_stream(lines));
    append_chunk(file, "IEND", {});

    std::FILE* out = std::fopen(path.c_str(), "wb");
    if (out == nullptr) {
        return false;
    }
    const bool written = std::fwrite(file.data(), 1, file.size(), out) == file.size();
    return std::fclose(out) == 0 && written;
}
