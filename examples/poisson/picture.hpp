// A picture of 256 colours, written as PNG without a library: the pixels are stored uncompressed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

struct Colour {
    std::uint8_t red, green, blue;
};

// From blue over cream to red, darker at 16 contour lines.
std::array<Colour, 256> contour_palette();

// `pixels` holds width × height indices into the palette, from the top left. False if the file
// can't be written (errno says why).
bool write_png(const std::string& path, int width, int height,
               const std::vector<std::uint8_t>& pixels, const std::array<Colour, 256>& palette);
