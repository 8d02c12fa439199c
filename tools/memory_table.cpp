#include "memory_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace warren::tools {

namespace {

char letter_of(int origin) {
    switch (origin) {
    case WARREN_ORIGIN_FIRMWARE:
        return 'f';
    case WARREN_ORIGIN_MEASURED:
        return 'm';
    case WARREN_ORIGIN_GUESSED:
        return 'g';
    case WARREN_MEM_ORIGIN_SYSTEM:
        return 's';
    default:
        return 'p';
    }
}

std::string bytes_text(std::uint64_t bytes) {
    const char* unit = "kMGT";
    double value = static_cast<double>(bytes) / 1024;
    while (value >= 1024 && unit[1] != '\0') {
        value /= 1024;
        ++unit;
    }
    char text[32];
    std::snprintf(text, sizeof text, value < 100 ? "%.1f %ciB" : "%.0f %ciB", value, *unit);
    return text;
}

std::string padded(std::string text, std::size_t width, bool right) {
    // Counts characters, not bytes, as names may not be ASCII.
    const auto length = static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char one) { return (one & 0xc0) != 0x80; }));
    const std::string blanks(width > length ? width - length : 0, ' ');
    return right ? blanks + text : text + blanks;
}

std::string escaped(const std::string& text) {
    std::string made;
    for (const char character : text) {
        switch (character) {
        case '<':
            made += "&lt;";
            break;
        case '&':
            made += "&amp;";
            break;
        case '>':
            made += "&gt;";
            break;
        default:
            made += static_cast<unsigned char>(character) < ' ' ? ' ' : character;
        }
    }
    return made;
}

Cell cell_of(warren_memory* memory, int attribute, unsigned node) {
    Cell cell;
    cell.known = warren_mem_get_value(memory, attribute, nullptr, node, &cell.value,
                                      &cell.origin) == WARREN_MEM_SUCCESS;
    return cell;
}

MemoryRow row_of(const warren_topology* topology, warren_memory* memory, warren_object object) {
    MemoryRow row;
    row.node = warren_object_os_index(topology, object);
    const char* subtype = warren_object_subtype(topology, object);
    row.kind = subtype != nullptr ? subtype : "";
    row.capacity = cell_of(memory, WARREN_MEM_CAPACITY, row.node);
    row.available = cell_of(memory, WARREN_MEM_AVAILABLE, row.node);
    for (warren_object above = warren_object_parent(topology, object);
         warren_object_type(topology, above) == WARREN_OBJECT_MEMORY_CACHE;
         above = warren_object_parent(topology, above)) {
        warren_cache cache{};
        if (warren_object_cache(topology, above, &cache) == WARREN_TOPOLOGY_SUCCESS) {
            row.cache_bytes += cache.bytes;
        }
    }
    row.local_to = list_of(warren_object_cpus(topology, object));
    return row;
}

Matrix matrix_of(const warren_topology* topology, std::uint32_t attribute,
                 const std::vector<MemoryRow>& memories) {
    Matrix matrix;
    matrix.name = warren_topology_attribute_name(topology, attribute);
    const unsigned flags = warren_topology_attribute_flags(topology, attribute);
    matrix.more_is_better = (flags & WARREN_ATTRIBUTE_HIGHER_IS_BETTER) != 0;
    switch (attribute) {
    case WARREN_ATTRIBUTE_BANDWIDTH:
    case WARREN_ATTRIBUTE_READ_BANDWIDTH:
    case WARREN_ATTRIBUTE_WRITE_BANDWIDTH:
        matrix.unit = "MiB/s";
        break;
    case WARREN_ATTRIBUTE_LATENCY:
    case WARREN_ATTRIBUTE_READ_LATENCY:
    case WARREN_ATTRIBUTE_WRITE_LATENCY:
        matrix.unit = "ns";
        break;
    default:
        break;
    }
    const std::uint32_t rows = warren_topology_initiators(topology);
    for (std::uint32_t row = 0; row < rows; ++row) {
        std::vector<Cell>& cells = matrix.rows.emplace_back();
        for (const MemoryRow& memory : memories) {
            Cell cell;
            cell.known = warren_topology_value(topology, attribute, row, memory.node, &cell.value,
                                               &cell.origin) == WARREN_TOPOLOGY_SUCCESS;
            cells.push_back(cell);
        }
    }
    return matrix;
}

} // namespace

std::string list_of(warren_set set) {
    std::string text;
    for (std::uint32_t one = warren_set_next(set, 0); one != WARREN_NO_INDEX;) {
        std::uint32_t last = one;
        while (warren_set_has(set, last + 1) != 0) {
            ++last;
        }
        text += (text.empty() ? "" : ",") + std::to_string(one);
        if (last > one) {
            text += "-" + std::to_string(last);
        }
        one = warren_set_next(set, last + 1);
    }
    return text.empty() ? "none" : text;
}

std::vector<std::string> names_in(const std::string& criteria) {
    std::vector<std::string> names;
    const std::string list = criteria.substr(0, criteria.find_first_of(" ;"));
    for (std::size_t begin = 0; begin < list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        const std::string term = list.substr(begin, end - begin);
        names.push_back(term.substr(0, term.find('~')));
        begin = end + 1;
    }
    return names;
}

std::string value_text(warren_memory* memory, const std::string& attribute, const std::string& from,
                       unsigned node, int width) {
    int number = -1;
    Cell cell;
    cell.known =
        warren_mem_find_attribute(memory, attribute.c_str(), &number) == WARREN_MEM_SUCCESS &&
        warren_mem_get_value(memory, number, from.c_str(), node, &cell.value, &cell.origin) ==
            WARREN_MEM_SUCCESS;
    std::string text = "-";
    if (cell.known) {
        const bool bytes = number == WARREN_MEM_CAPACITY || number == WARREN_MEM_AVAILABLE ||
                           number == WARREN_MEM_CACHE;
        text = bytes ? bytes_text(cell.value) : std::to_string(cell.value);
        text += std::string(" ") + letter_of(cell.origin);
    }
    return padded(text, static_cast<std::size_t>(width), true);
}

Matrices matrices_of(const warren_topology* topology, warren_memory* memory, bool all) {
    Matrices made;
    const std::uint32_t count = warren_topology_count(topology, WARREN_OBJECT_NUMA_NODE);
    for (std::uint32_t index = 0; index < count; ++index) {
        made.memories.push_back(row_of(
            topology, memory, warren_topology_object(topology, WARREN_OBJECT_NUMA_NODE, index)));
    }
    for (std::uint32_t row = 0; row < warren_topology_initiators(topology); ++row) {
        warren_set cpus{};
        warren_object device = WARREN_NO_OBJECT;
        warren_topology_initiator(topology, row, &cpus, &device);
        const char* name =
            device == WARREN_NO_OBJECT ? nullptr : warren_object_name(topology, device);
        made.initiators.push_back(device == WARREN_NO_OBJECT ? list_of(cpus)
                                  : name != nullptr          ? name
                                                             : "device " + std::to_string(device));
    }
    std::vector<std::uint32_t> attributes = {WARREN_ATTRIBUTE_BANDWIDTH, WARREN_ATTRIBUTE_LATENCY};
    for (std::uint32_t number = WARREN_ATTRIBUTE_READ_BANDWIDTH;
         all && number < warren_topology_attributes(topology); ++number) {
        attributes.push_back(number);
    }
    for (const std::uint32_t attribute : attributes) {
        made.matrices.push_back(matrix_of(topology, attribute, made.memories));
    }
    return made;
}

std::string table_of(const Matrices& matrices) {
    bool caches = false;
    for (const MemoryRow& memory : matrices.memories) {
        caches = caches || memory.cache_bytes != 0;
    }
    std::string text = "memory  kind         capacity   available" +
                       std::string(caches ? "  behind cache" : "") + "  local to processors\n";
    for (const MemoryRow& memory : matrices.memories) {
        text += padded(std::to_string(memory.node), 6, true) + "  " +
                padded(memory.kind, 9, false) + "  " +
                padded(memory.capacity.known ? bytes_text(memory.capacity.value) : "-", 10, true) +
                "  " +
                padded(memory.available.known ? bytes_text(memory.available.value) : "-", 10, true);
        if (caches) {
            text += "  " + padded(memory.cache_bytes != 0 ? bytes_text(memory.cache_bytes) : "-",
                                  12, true);
        }
        text += "  " + memory.local_to + "\n";
    }
    std::size_t widest = 4;
    for (const std::string& initiator : matrices.initiators) {
        widest = std::max(widest, initiator.size());
    }
    bool any = false;
    for (const Matrix& matrix : matrices.matrices) {
        text += "\n" + matrix.name + (matrix.unit.empty() ? "" : ", " + matrix.unit) + "\n" +
                padded("from", widest, false) + "  to";
        for (const MemoryRow& memory : matrices.memories) {
            text += padded(std::to_string(memory.node), 9, true) + "  ";
        }
        text += "\n";
        for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
            text += padded(matrices.initiators[row], widest, false) + "    ";
            for (const Cell& cell : matrix.rows[row]) {
                text += padded(
                    cell.known ? std::to_string(cell.value) + " " + letter_of(cell.origin) : "-  ",
                    11, true);
                any = any || cell.known;
            }
            text += "\n";
        }
    }
    return any ? text + "\nf: firmware's, m: measured, g: guessed from the others and distances\n"
               : text;
}

namespace {

constexpr int left = 130;
constexpr int cell_width = 84;
constexpr int cell_height = 26;

// A picture as it is drawn.
class Drawing {
  public:
    Drawing(int width, int height) {
        std::snprintf(line_, sizeof line_,
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                      "font-family=\"sans-serif\" font-size=\"12\">\n"
                      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                      width, height);
        text_ = line_;
    }

    void write(int x, int y, const char* anchor, const char* colour, const std::string& what) {
        std::snprintf(line_, sizeof line_,
                      "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" fill=\"%s\">", x, y, anchor,
                      colour);
        text_ += line_ + escaped(what) + "</text>\n";
    }

    void field(int x, int y, int shade) {
        std::snprintf(line_, sizeof line_,
                      "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                      "fill=\"rgb(%d,%d,245)\" stroke=\"white\"/>\n",
                      x, y, cell_width, cell_height, shade, shade);
        text_ += line_;
    }

    std::string finish() { return text_ + "</svg>\n"; }

  private:
    std::string text_;
    char line_[512];
};

// How good a value is, from 0 to 1, on a logarithmic scale, since memories differ by factors.
class Scale {
  public:
    explicit Scale(const Matrix& matrix) : more_is_better_(matrix.more_is_better) {
        for (const auto& row : matrix.rows) {
            for (const Cell& cell : row) {
                if (cell.known && cell.value > 0) {
                    least_ = std::min(least_, static_cast<double>(cell.value));
                    most_ = std::max(most_, static_cast<double>(cell.value));
                }
            }
        }
    }

    double of(const Cell& cell) const {
        if (!cell.known || cell.value <= 0 || most_ <= least_) {
            return 0;
        }
        const double high =
            std::log(static_cast<double>(cell.value) / least_) / std::log(most_ / least_);
        return more_is_better_ ? high : 1 - high;
    }

  private:
    double least_ = INFINITY;
    double most_ = 0;
    bool more_is_better_;
};

void draw(Drawing& drawing, const Matrix& matrix, const Matrices& all, int top) {
    drawing.write(10, top, "start", "black",
                  matrix.name + (matrix.unit.empty() ? "" : ", " + matrix.unit));
    for (std::size_t target = 0; target < all.memories.size(); ++target) {
        const MemoryRow& memory = all.memories[target];
        drawing.write(left + cell_width * static_cast<int>(target) + cell_width / 2, top + 18,
                      "middle", "black",
                      "to " + std::to_string(memory.node) +
                          (memory.kind.empty() ? "" : " " + memory.kind));
    }
    const Scale scale(matrix);
    for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
        const int y = top + 26 + cell_height * static_cast<int>(row);
        std::string from = all.initiators[row];
        if (from.size() > 14) {
            from = from.substr(0, 13) + "…";
        }
        drawing.write(left - 8, y + 17, "end", "black", "from " + from);
        for (std::size_t target = 0; target < matrix.rows[row].size(); ++target) {
            const Cell& cell = matrix.rows[row][target];
            const double good = scale.of(cell);
            const int x = left + cell_width * static_cast<int>(target);
            drawing.field(x, y, 245 - static_cast<int>(good * 170));
            drawing.write(x + cell_width / 2, y + 17, "middle", good > 0.7 ? "white" : "black",
                          cell.known ? std::to_string(cell.value) + " " + letter_of(cell.origin)
                                     : "-");
        }
    }
}

} // namespace

// Draws a grid per attribute. The better a value, the darker its field.
std::string picture_of(const Matrices& matrices) {
    const int width = left + cell_width * static_cast<int>(matrices.memories.size()) + 20;
    const int height_of_one = 64 + cell_height * static_cast<int>(matrices.initiators.size());
    const int height = height_of_one * static_cast<int>(matrices.matrices.size()) + 30;
    Drawing drawing(width, height);
    int top = 24;
    for (const Matrix& matrix : matrices.matrices) {
        draw(drawing, matrix, matrices, top);
        top += height_of_one;
    }
    drawing.write(10, top, "start", "#555", "f: firmware's, m: measured, g: guessed");
    return drawing.finish();
}

} // namespace warren::tools
