// Common parts of the heap's tests.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include "memory/heap/heaps.hpp"
#include "memory/heap/numa.hpp"

namespace warren::memory {

// The machine's memory may be one node only; tests on several are in tests/memory/.
inline Kind kind_of_machine(Policy policy = Policy::next, PageSize page_size = PageSize::any) {
    Kind kind;
    kind.policy = policy;
    kind.page_size = page_size;
    const NodeSet allowed = allowed_nodes();
    for (int node = 0; node < node_limit && kind.count < target_limit; ++node) {
        if (allowed.has(node)) {
            kind.targets[kind.count++] = static_cast<std::int16_t>(node);
        }
    }
    kind.equals = kind.count;
    return kind;
}

inline Heap& heap(Policy policy = Policy::next, PageSize page_size = PageSize::any) {
    Heap* made = heap_of_kind(kind_of_machine(policy, page_size));
    EXPECT_NE(made, nullptr);
    return *made;
}

} // namespace warren::memory
