// A program with some operators of its own: the C++ library's others use them. Ends with 1 if a
// block goes to an operator delete that isn't of the operator new it came from.
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

int made = 0;
int ended = 0;
constexpr std::uint64_t mark = 0x5ca1ab1e;

} // namespace

// clang declares it with -fsized-deallocation only. The C++ library has it.
void operator delete(void* block, std::size_t) noexcept;

void* operator new(std::size_t bytes) {
    ++made;
    auto* block = static_cast<std::uint64_t*>(std::malloc(bytes + 16));
    *block = mark;
    return block + 2;
}

void operator delete(void* block) noexcept {
    ++ended;
    std::uint64_t* whole = static_cast<std::uint64_t*>(block) - 2;
    if (*whole != mark) {
        std::_Exit(1);
    }
    std::free(whole);
}

int main() {
    void* volatile block = ::operator new(8);
    ::operator delete (block, std::size_t{8});
    block = ::operator new[](800);
    ::operator delete[](block);
    block = ::operator new[](800, std::nothrow);
    ::operator delete[](block, std::nothrow);
    return made == 3 && ended == 3 ? 0 : 1;
}
