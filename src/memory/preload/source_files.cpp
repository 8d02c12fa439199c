#include "memory/preload/source_files.hpp"

#include <array>
#include <cstdint>
#include <cstring>

namespace warren::memory {

namespace {

// Numbers of the DWARF standard (version 5, chapter 7).
enum : std::uint64_t {
    unit_compile = 1,
    unit_partial = 3,
    attribute_name = 0x03,
    form_string = 0x08,
    form_strp = 0x0e,
    form_line_strp = 0x1f,
    form_implicit_const = 0x21
};

// Goes through bytes; beyond their end, everything is 0 and it is not good any more.
class Cursor {
  public:
    Cursor(const Bytes& bytes, std::uint64_t offset)
        : at_(bytes.begin), left_(bytes.bytes), good_(true) {
        skip(offset);
    }

    bool good() const { return good_; }
    std::size_t left() const { return left_; }
    const char* at() const { return at_; }

    void skip(std::uint64_t bytes) {
        if (bytes > left_) {
            good_ = false;
            bytes = left_;
        }
        at_ += bytes;
        left_ -= bytes;
    }
    // Reads a little-endian number of 1 to 8 bytes.
    std::uint64_t number(std::size_t bytes) {
        std::uint64_t value = 0;
        if (bytes > left_) {
            skip(bytes);
            return 0;
        }
        std::memcpy(&value, at_, bytes);
        skip(bytes);
        return value;
    }
    // LEB128; for signed ones the value is not used.
    std::uint64_t packed() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; good_; shift += 7) {
            const std::uint64_t byte = number(1);
            value |= shift < 64 ? (byte & 0x7f) << shift : 0;
            if ((byte & 0x80) == 0) {
                return value;
            }
        }
        return 0;
    }
    const char* text() {
        const void* end = std::memchr(at_, 0, left_);
        if (left_ == 0 || end == nullptr) {
            good_ = false;
            return nullptr;
        }
        const char* begin = at_;
        skip(static_cast<std::size_t>(static_cast<const char*>(end) - begin) + 1);
        return begin;
    }
    // A length, and how wide offsets are then: 4 bytes, or 8 behind a mark.
    std::uint64_t length(std::size_t& offset_bytes) {
        const std::uint64_t value = number(4);
        offset_bytes = value == 0xffffffff ? 8 : 4;
        return offset_bytes == 8 ? number(8) : value;
    }
    // Ends after so many bytes more.
    void limit(std::uint64_t bytes) {
        if (bytes > left_) {
            good_ = false;
        } else {
            left_ = bytes;
        }
    }

  private:
    const char* at_;
    std::size_t left_;
    bool good_;
};

// How long a form is, by DWARF's numbers (DWARF 5, 7.5.6; 0x01 is DW_FORM_addr).
enum class FormLength : std::uint8_t {
    unknown,
    none,
    of_1,
    of_2,
    of_3,
    of_4,
    of_8,
    of_16,
    address,
    offset,
    packed,
    text,
    block_1, // behind its length, which has so many bytes
    block_2,
    block_4,
    block_packed
};

constexpr std::array<FormLength, 0x2d> form_lengths = [] {
    using enum FormLength;
    return std::array<FormLength, 0x2d>{
        unknown,      address,      unknown, block_2, block_4, of_2,   of_4,    of_8,   // 0x00
        text,         block_packed, block_1, of_1,    of_1,    packed, offset,  packed, // 0x08
        offset,       of_1,         of_2,    of_4,    of_8,    packed, unknown, offset, // 0x10
        block_packed, none,         packed,  packed,  of_4,    offset, of_16,   offset, // 0x18
        of_8,         none,         packed,  packed,  of_8,    of_1,   of_2,    of_3,   // 0x20
        of_4,         of_1,         of_2,    of_3,    of_4                              // 0x28
    };
}();
static_assert(form_implicit_const == 0x21);

// False: a form that is not known, so nobody knows where the next one begins.
bool skip_form(std::uint64_t form, std::size_t offset_bytes, std::size_t address_bytes,
               Cursor& die) {
    switch (form < form_lengths.size() ? form_lengths[form] : FormLength::unknown) {
    case FormLength::unknown:
        return false;
    case FormLength::none:
        break;
    case FormLength::of_1:
        die.skip(1);
        break;
    case FormLength::of_2:
        die.skip(2);
        break;
    case FormLength::of_3:
        die.skip(3);
        break;
    case FormLength::of_4:
        die.skip(4);
        break;
    case FormLength::of_8:
        die.skip(8);
        break;
    case FormLength::of_16:
        die.skip(16);
        break;
    case FormLength::address:
        die.skip(address_bytes);
        break;
    case FormLength::offset:
        die.skip(offset_bytes);
        break;
    case FormLength::packed:
        die.packed();
        break;
    case FormLength::text:
        die.text();
        break;
    case FormLength::block_1:
        die.skip(die.number(1));
        break;
    case FormLength::block_2:
        die.skip(die.number(2));
        break;
    case FormLength::block_4:
        die.skip(die.number(4));
        break;
    case FormLength::block_packed:
        die.skip(die.packed());
        break;
    }
    return true;
}

// The abbreviation's attributes; not good: there is none of this number.
Cursor abbreviation(const Bytes& section, std::uint64_t offset, std::uint64_t number) {
    Cursor at(section, offset);
    while (at.good()) {
        const std::uint64_t code = at.packed();
        if (code == 0) {
            break;
        }
        at.packed(); // tag
        at.skip(1);  // whether it has children
        if (code == number) {
            return at;
        }
        std::uint64_t form = 1;
        for (std::uint64_t attribute = 1; (attribute | form) != 0 && at.good();) {
            attribute = at.packed();
            form = at.packed();
            if (form == form_implicit_const) {
                at.packed();
            }
        }
    }
    Cursor none({}, 1);
    return none;
}

} // namespace

const char* source_file_of(const DebugSections& debug, std::uint64_t offset) {
    Cursor unit(debug.info, offset);
    std::size_t offset_bytes = 0;
    unit.limit(unit.length(offset_bytes));
    const std::uint64_t version = unit.number(2);
    std::uint64_t type = unit_compile;
    std::uint64_t address_bytes = 0;
    std::uint64_t abbreviations = 0;
    if (version >= 5) {
        type = unit.number(1);
        address_bytes = unit.number(1);
        abbreviations = unit.number(offset_bytes);
    } else {
        abbreviations = unit.number(offset_bytes);
        address_bytes = unit.number(1);
    }
    const std::uint64_t number = unit.packed();
    if (!unit.good() || version < 2 || version > 5 || number == 0 ||
        (type != unit_compile && type != unit_partial)) {
        return nullptr;
    }
    Cursor attributes = abbreviation(debug.abbreviations, abbreviations, number);
    while (attributes.good() && unit.good()) {
        const std::uint64_t attribute = attributes.packed();
        const std::uint64_t form = attributes.packed();
        if (form == form_implicit_const) {
            attributes.packed();
        }
        if (attribute == 0) {
            break;
        }
        if (attribute != attribute_name) {
            if (!skip_form(form, offset_bytes, address_bytes, unit)) {
                break;
            }
            continue;
        }
        if (form == form_string) {
            return unit.text();
        }
        if (form == form_strp || form == form_line_strp) {
            const std::uint64_t place = unit.number(offset_bytes);
            Cursor text(form == form_strp ? debug.strings : debug.line_strings, place);
            return unit.good() && text.good() ? text.text() : nullptr;
        }
        break;
    }
    return nullptr;
}

void find_source_files(const DebugSections& debug, const SourceFileSearch& search) {
    Cursor sets(debug.ranges, 0);
    while (sets.good() && sets.left() != 0) {
        Cursor set = sets;
        std::size_t offset_bytes = 0;
        const std::uint64_t length = set.length(offset_bytes);
        const std::size_t head = offset_bytes == 8 ? 12 : 4;
        sets.skip(head);
        sets.skip(length);
        if (!sets.good()) {
            return;
        }
        set.limit(length);
        const std::uint64_t version = set.number(2);
        const std::uint64_t unit = set.number(offset_bytes);
        const std::uint64_t address_bytes = set.number(1);
        const std::uint64_t segment_bytes = set.number(1);
        if (!set.good() || version != 2 || address_bytes != 8 || segment_bytes != 0) {
            continue;
        }
        // Pairs begin at a multiple of their size, counted from the set's begin.
        const std::size_t before = head + 2 + offset_bytes + 2;
        set.skip(-before % 16);
        const char* path = source_file_of(debug, unit);
        const std::uint64_t wanted = path != nullptr ? search.wanted(search.self, path) : 0;
        while (wanted != 0 && set.left() >= 16) {
            const std::uint64_t begin = set.number(8);
            const std::uint64_t bytes = set.number(8);
            if ((begin | bytes) == 0) {
                break;
            }
            if (bytes != 0 && bytes <= UINT64_MAX - begin) {
                search.found(search.self, wanted, begin, begin + bytes);
            }
        }
    }
}

} // namespace warren::memory
