// The picture: every object is a box around its children. Caches are bars above the objects that
// they serve, as in data sheets. Memory stands above its local processors, in the colour of its
// kind; devices stand below. Children of one kind are laid out in the grid whose shape is closest
// to a page's.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "topo/forms.hpp"
#include "topology/discovery/hwloc_xml.hpp"

namespace warren::tools {

namespace {

// Sizes in points. The font is monospaced.
constexpr double letter_width = 6.1;
constexpr double line_height = 13;
constexpr double gap = 5;
constexpr double page_shape = 1.6;
constexpr double row_shape = 8; // of memory and devices, beside their processors

struct Colour {
    const char* kind;
    const char* fill;
};

// Colours of memory, by a part of its subtype.
constexpr std::array memory_colours{
    Colour{"HBM", "#f4a582"},  Colour{"MCDRAM", "#f4a582"}, Colour{"NVM", "#c2a5cf"},
    Colour{"SPM", "#92c5de"},  Colour{"CXL", "#92c5de"},    Colour{"GPU", "#ffe08a"},
    Colour{"DRAM", "#a6dba0"},
};
constexpr const char* plain_memory = "#c7e9c0";

const char* memory_colour(const std::string& kind) {
    for (const Colour& colour : memory_colours) {
        if (kind.find(colour.kind) != std::string::npos) {
            return colour.fill;
        }
    }
    return plain_memory;
}

const char* colour_of(int type) {
    switch (type) {
    case WARREN_OBJECT_MACHINE:
        return "#ffffff";
    case WARREN_OBJECT_PACKAGE:
        return "#eceff4";
    case WARREN_OBJECT_DIE:
    case WARREN_OBJECT_GROUP:
        return "#f7f5ee";
    case WARREN_OBJECT_CORE:
        return "#d5d9e2";
    case WARREN_OBJECT_PU:
        return "#ffffff";
    case WARREN_OBJECT_OS_DEVICE:
        return "#d8e4bc";
    case WARREN_OBJECT_MEMORY_CACHE:
        return "#e3f1de";
    default:
        return "#fbfbfb"; // caches
    }
}

struct Block {
    double x = 0; // in the block around it
    double y = 0;
    double width = 0;
    double height = 0;
    double frame = 0; // height of its own box; a bar's is less than its height
    std::string fill;
    std::string title; // shown when the pointer is on it
    std::vector<std::string> lines;
    bool marked = false; // ranks are bound here
    std::vector<Block> inside;
};

class Painter {
  public:
    Painter(const warren_topology* topology, const BoundRanks& ranks)
        : topology_(topology), ranks_(ranks) {}

    std::string paint();

  private:
    Block block(warren_object one);
    void label(warren_object one, Block& made) const;
    void find_devices(warren_object one, std::vector<Block>& found);
    static void arrange(std::vector<Block> row, double wanted_shape, Block& made);
    void draw(const Block& one, double x, double y);
    void legend(double y);
    void box(double x, double y, double width, double height, const std::string& fill,
             const char* stroke);
    void words(double x, double y, const std::string& text, const char* weight);

    const warren_topology* topology_;
    const BoundRanks& ranks_;
    std::vector<std::string> kinds_; // of memory that the picture has
    std::string text_;
};

bool is_bar(int type) {
    return type >= WARREN_OBJECT_L1_CACHE && type <= WARREN_OBJECT_L3I_CACHE;
}

void Painter::label(warren_object one, Block& made) const {
    const int type = warren_object_type(topology_, one);
    const std::uint32_t os_index = warren_object_os_index(topology_, one);
    made.title = label_text(topology_, one);
    if (type == WARREN_OBJECT_PU) {
        made.lines = {os_index != WARREN_NO_INDEX ? std::to_string(os_index) : "PU"};
    } else if (type == WARREN_OBJECT_NUMA_NODE) {
        made.lines = {"node " + std::to_string(os_index) + " " + memory_kind(topology_, one),
                      bytes_text(warren_object_memory_bytes(topology_, one))};
        const std::uint32_t initiator = warren_topology_initiator_of_object(topology_, one);
        for (const std::uint32_t attribute :
             {WARREN_ATTRIBUTE_BANDWIDTH, WARREN_ATTRIBUTE_LATENCY}) {
            const std::string value = value_text(topology_, attribute, initiator, os_index);
            if (initiator != WARREN_NO_INDEX && !value.empty()) {
                made.lines.push_back(value);
            }
        }
    } else if (type == WARREN_OBJECT_OS_DEVICE) {
        const char* name = warren_object_name(topology_, one);
        made.lines = {name != nullptr ? name : "device"};
    } else if (type == WARREN_OBJECT_CORE) {
        made.lines = {"Core " + std::to_string(warren_object_logical_index(topology_, one))};
    } else {
        made.lines = {is_bar(type) ? what_text(topology_, one) : made.title};
    }
    const auto bound = ranks_.find(one);
    if (bound != ranks_.end()) {
        made.marked = true;
        made.lines.push_back(ranks_text(bound->second));
        made.title += ", " + made.lines.back();
    }
}

// Puts blocks into a grid below the content of `made`.
void Painter::arrange(std::vector<Block> row, double wanted_shape, Block& made) {
    if (row.empty()) {
        return;
    }
    double width = 0;
    double height = 0;
    for (const Block& one : row) {
        width = std::max(width, one.width);
        height = std::max(height, one.height);
    }
    std::size_t columns = 1;
    double best = 1e9;
    for (std::size_t tried = 1; tried <= row.size(); ++tried) {
        const std::size_t lines = (row.size() + tried - 1) / tried;
        const auto rows = static_cast<double>(lines);
        const double shape = static_cast<double>(tried) * (width + gap) / (rows * (height + gap));
        const double off = std::abs(std::log(shape / wanted_shape)) +
                           (row.size() % tried == 0 ? 0 : 0.4); // a full grid is easier to read
        if (off < best) {
            best = off;
            columns = tried;
        }
    }
    const double top = made.height;
    for (std::size_t index = 0; index < row.size(); ++index) {
        Block& one = row[index];
        const std::size_t line = index / columns;
        const std::size_t column = index % columns;
        one.x = gap + static_cast<double>(column) * (width + gap);
        one.y = top + static_cast<double>(line) * (height + gap);
        made.width = std::max(made.width, one.x + one.width + gap);
        made.height = std::max(made.height, one.y + one.height + gap);
        made.inside.push_back(std::move(one));
    }
}

// Finds devices that have a name for programs. The bridges above them are left out.
// NOLINTNEXTLINE(misc-no-recursion)
void Painter::find_devices(warren_object one, std::vector<Block>& found) {
    for (const warren_object child : children_of(topology_, one, WARREN_CHILD_IO)) {
        if (warren_object_type(topology_, child) == WARREN_OBJECT_OS_DEVICE) {
            found.push_back(block(child));
        }
        find_devices(child, found);
    }
}

// NOLINTNEXTLINE(misc-no-recursion)
Block Painter::block(warren_object one) {
    const int type = warren_object_type(topology_, one);
    Block made;
    label(one, made);
    made.fill = colour_of(type);
    if (type == WARREN_OBJECT_NUMA_NODE) {
        const std::string kind = memory_kind(topology_, one);
        made.fill = memory_colour(kind);
        if (!kind.empty() && std::find(kinds_.begin(), kinds_.end(), kind) == kinds_.end()) {
            kinds_.push_back(kind);
        }
    }
    for (const std::string& line : made.lines) {
        made.width = std::max(made.width, static_cast<double>(line.size()) * letter_width);
    }
    made.width += 2 * gap;
    made.height = static_cast<double>(made.lines.size()) * line_height + gap;
    made.frame = made.height;
    const double own_width = made.width;
    std::vector<Block> rows[3];
    for (const warren_object child : children_of(topology_, one, WARREN_CHILD_MEMORY)) {
        rows[0].push_back(block(child));
    }
    for (const warren_object child : children_of(topology_, one, WARREN_CHILD_TREE)) {
        rows[1].push_back(block(child));
    }
    if (type != WARREN_OBJECT_OS_DEVICE) {
        find_devices(one, rows[2]);
    }
    if (is_bar(type) && (!rows[1].empty() || !rows[0].empty())) {
        made.height += gap;
    }
    arrange(std::move(rows[0]), row_shape, made);
    arrange(std::move(rows[1]), page_shape, made);
    arrange(std::move(rows[2]), row_shape, made);
    if (!is_bar(type)) {
        made.frame = made.height;
    } else if (made.inside.size() == 1) { // stacked bars end at the same place
        made.inside[0].x = 0;
        made.width = std::max(own_width, made.inside[0].width);
        made.inside[0].width = made.width;
    }
    return made;
}

void Painter::box(double x, double y, double width, double height, const std::string& fill,
                  const char* stroke) {
    std::array<char, 256> text;
    std::snprintf(text.data(), text.size(),
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"2\" fill=\"%s\" "
                  "stroke=\"%s\"/>",
                  x, y, width, height, fill.c_str(), stroke);
    text_ += text.data();
}

void Painter::words(double x, double y, const std::string& text, const char* weight) {
    std::array<char, 96> start;
    std::snprintf(start.data(), start.size(), "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, weight);
    text_ += start.data() + discovery::xml_escaped(text) + "</text>";
}

// NOLINTNEXTLINE(misc-no-recursion)
void Painter::draw(const Block& one, double x, double y) {
    text_ += "<g><title>" + discovery::xml_escaped(one.title) + "</title>";
    box(x, y, one.width, one.frame, one.fill,
        one.marked ? "#c0392b\" stroke-width=\"2" : "#7a808c");
    for (std::size_t line = 0; line < one.lines.size(); ++line) {
        const bool of_ranks = one.marked && line + 1 == one.lines.size();
        words(x + gap, y + static_cast<double>(line + 1) * line_height - 2, one.lines[line],
              of_ranks ? " font-weight=\"bold\" fill=\"#c0392b\"" : "");
    }
    text_ += "</g>\n";
    for (const Block& part : one.inside) {
        draw(part, x + part.x, y + part.y);
    }
}

void Painter::legend(double y) {
    double x = 2 * gap;
    for (const std::string& kind : kinds_) {
        box(x, y, line_height, line_height, memory_colour(kind), "#7a808c");
        words(x + line_height + gap, y + line_height - 3, kind, "");
        x += line_height + 4 * gap + static_cast<double>(kind.size()) * letter_width;
    }
}

std::string Painter::paint() {
    const Block machine = block(0);
    const double width = machine.width + 2 * gap;
    const double height = machine.height + 2 * gap + (kinds_.empty() ? 0 : line_height + 2 * gap);
    std::array<char, 512> head;
    std::snprintf(head.data(), head.size(),
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                  "viewBox=\"0 0 %.0f %.0f\" font-family=\"DejaVu Sans Mono, monospace\" "
                  "font-size=\"10\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
                  width, height, width, height);
    text_ = head.data();
    draw(machine, gap, gap);
    legend(machine.height + 3 * gap);
    text_ += "</svg>\n";
    return std::move(text_);
}

} // namespace

std::string as_svg(const warren_topology* topology, const BoundRanks& ranks) {
    return Painter(topology, ranks).paint();
}

} // namespace warren::tools
