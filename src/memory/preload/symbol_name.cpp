#include "memory/preload/symbol_name.hpp"

#include <cstring>

namespace warren::memory {

namespace {

bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

} // namespace

bool qualified_name(const char* symbol, char* name, std::size_t bytes) {
    if (std::strncmp(symbol, "_Z", 2) != 0) {
        return false;
    }
    const char* at = symbol + 2;
    at += *at == 'L'; // of one file
    const bool nested = *at == 'N';
    if (nested) {
        ++at;
        while (*at == 'r' || *at == 'V' || *at == 'K' || *at == 'R' || *at == 'O') {
            ++at; // of the object it is called on
        }
    }
    std::size_t length = 0;
    const char* last = nullptr; // the part before, for constructors
    std::size_t last_bytes = 0;
    const auto add = [&](const char* part, std::size_t part_bytes) {
        const std::size_t more = part_bytes + (length != 0 ? 2 : 0);
        if (length + more >= bytes) {
            return false;
        }
        if (length != 0) {
            std::memcpy(name + length, "::", 2);
            length += 2;
        }
        std::memcpy(name + length, part, part_bytes);
        length += part_bytes;
        name[length] = '\0';
        return true;
    };
    for (;;) {
        if (std::strncmp(at, "St", 2) == 0 && length == 0) {
            at += 2;
            if (!add("std", 3)) {
                return false;
            }
            continue;
        }
        if (nested && last != nullptr && (*at == 'C' || *at == 'D') && is_digit(at[1])) {
            if (!add(last, last_bytes)) {
                return false;
            }
            at += 2;
        } else if (is_digit(*at)) {
            std::size_t part_bytes = 0;
            while (is_digit(*at) && part_bytes < bytes) {
                part_bytes = part_bytes * 10 + static_cast<std::size_t>(*at++ - '0');
            }
            if (part_bytes == 0 || strnlen(at, part_bytes) < part_bytes) {
                return false;
            }
            const bool anonymous = part_bytes >= 10 && std::strncmp(at, "_GLOBAL__N", 10) == 0;
            if (!anonymous && !add(at, part_bytes)) { // what is within it is known without it
                return false;
            }
            last = at;
            last_bytes = part_bytes;
            at += part_bytes;
        } else {
            return nested && *at == 'E' && last != nullptr && length != 0;
        }
        if (!nested) {
            return *at != 'I' && length != 0;
        }
    }
}

} // namespace warren::memory
