// Memory that begins at a page.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "base/page.hpp"

namespace warren::io {

struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
};
using PageMemory = std::unique_ptr<std::byte, FreeMemory>;

// Null: there is none.
inline PageMemory allocate_pages(std::size_t bytes) {
    return PageMemory(static_cast<std::byte*>(std::aligned_alloc(page_bytes, whole_pages(bytes))));
}

} // namespace warren::io
