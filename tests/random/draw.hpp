// Numbers that all ranks draw alike: a random program is a function of its seed. No state is shared
// between objects; an object belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace programs {

using Bits = std::uint64_t;

inline Bits mix(Bits x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

// Of a sequence of numbers.
inline Bits hash(Bits first) {
    return mix(first);
}
template <typename... Rest>
Bits hash(Bits first, Bits second, Rest... rest) {
    return hash(mix(first) + second, static_cast<Bits>(rest)...);
}

class Draw {
  public:
    explicit Draw(Bits seed) : state_(seed) {}

    Bits bits() { return mix(state_++); }
    // 0 … below - 1
    int below(long below) {
        return static_cast<int>(bits() % static_cast<Bits>(below < 1 ? 1 : below));
    }
    int between(int first, int last) { return first + below(last - first + 1); }
    bool one_in(int n) { return below(n) == 0; }
    template <typename T>
    const T& of(const std::vector<T>& choice) {
        return choice[static_cast<std::size_t>(below(static_cast<long>(choice.size())))];
    }
    template <typename T>
    void shuffle(std::vector<T>& list) {
        for (std::size_t left = list.size(); left > 1; --left) {
            std::swap(list[left - 1], list[bits() % left]);
        }
    }
    // 0 … n - 1 in a random order.
    std::vector<int> permutation(int n) {
        std::vector<int> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), 0);
        shuffle(order);
        return order;
    }
    // A divisor of n.
    int divisor(int n) {
        std::vector<int> all;
        for (int d = 1; d <= n; ++d) {
            if (n % d == 0) {
                all.push_back(d);
            }
        }
        return of(all);
    }

  private:
    Bits state_;
};

} // namespace programs
