#include "image/libc/stateful_calls.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace warren::image {

namespace {

enum class StatefulKind : std::uint8_t { call, refused_call, harmless_variable, refused_variable };

struct Stateful {
    const char* name;
    StatefulKind kind;
    const char* state;
};

constexpr Stateful table[] = {
#include "image/libc/interface/shared_calls.inc"
};

const Stateful* find(const char* name) {
    const auto* found = std::lower_bound(
        std::begin(table), std::end(table), name,
        [](const Stateful& one, const char* wanted) { return std::strcmp(one.name, wanted) < 0; });
    return found != std::end(table) && std::strcmp(found->name, name) == 0 ? found : nullptr;
}

} // namespace

const char* stateful_call_name(std::size_t index) {
    return index < std::size(table) ? table[index].name : nullptr;
}

const char* shared_state_of(const char* name) {
    const Stateful* found = find(name);
    return found != nullptr && found->kind == StatefulKind::call ? found->state : nullptr;
}

bool is_refused_call(const char* name) {
    const Stateful* found = find(name);
    return found != nullptr && found->kind == StatefulKind::refused_call;
}

const char* shared_variable_state_of(const char* name) {
    const Stateful* found = find(name);
    return found != nullptr && found->kind == StatefulKind::refused_variable ? found->state
                                                                             : nullptr;
}

} // namespace warren::image
