// HandleTable: the objects of one kind that a rank's program holds handles to.
//
// A handle of the standard ABI is an opaque 64-bit value. Warren's are
//     bits 63…32  generation of the slot (never 0)
//     bits 31…0   first_handle + index of the slot
// so that a freed, stale or invented handle is recognised (its generation is not the slot's), and
// the lower half is the Fortran integer of the handle (MPI_Comm_toint and its like). Values below
// first_handle are the standard's predefined handles, and never come from here.
//
// Whoever has 32 bits for a handle (src/foreign) names it by the short form, which is found too:
//     bit 63 set, bits 36…32 the last bits of the generation, bits 31…0 as above
//
// Objects stay where they are until freed; slots are reused first in, last out, with a new
// generation. Thread rule: insert and remove need the rank's lock; find may run beside them for
// other handles. Invariant: a slot holds its object's handle while the object lives, and 0 when
// none does; no generation comes twice in 2^31 lives of a slot.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace warren {

// The standard reserves handle values up to 4095 for predefined handles (MPI 5.0, ABI chapter).
inline constexpr std::uint32_t first_handle = 0x1000;

// The short form of handles: generations have 31 bits, so that no whole handle looks like one.
inline constexpr std::uintptr_t short_handle = std::uintptr_t{1} << 63;
inline constexpr int short_generation_bits = 5;

// Whether `bits` is the short form of a living object's handle.
constexpr bool is_short_form(std::uintptr_t bits, std::uintptr_t handle) {
    constexpr std::uintptr_t compared = ((std::uintptr_t{1} << short_generation_bits) - 1) << 32;
    return (bits & short_handle) != 0 && handle != 0 && ((bits ^ handle) & compared) == 0;
}

template <typename Object>
class HandleTable {
  public:
    HandleTable() = default;
    HandleTable(const HandleTable&) = delete;
    HandleTable& operator=(const HandleTable&) = delete;

    ~HandleTable() {
        for_each([this](Object& object) { remove(object); });
        for (std::uint32_t chunk = 0; chunk < chunk_limit; ++chunk) {
            delete[] chunks_[chunk];
        }
    }

    // The live object of a handle, or null when the handle is not one of this table.
    Object* find(const void* handle) const {
        const auto bits = reinterpret_cast<std::uintptr_t>(handle);
        Slot* slot = slot_of(static_cast<std::uint32_t>(bits));
        if (slot == nullptr || slot->handle != bits) [[unlikely]] {
            return slot != nullptr && is_short_form(bits, slot->handle) ? slot->object() : nullptr;
        }
        return slot->object();
    }

    // Like find(), but for whole handles only.
    Object* find_whole(const void* handle) const {
        const auto bits = reinterpret_cast<std::uintptr_t>(handle);
        Slot* slot = slot_of(static_cast<std::uint32_t>(bits));
        return slot != nullptr && slot->handle == bits ? slot->object() : nullptr;
    }
    // Like find(), out of line, for callers to whom the short form is rare.
    [[gnu::cold, gnu::noinline]] Object* find_short(const void* handle) const {
        return find(handle);
    }

    // Makes an object. Null when 2^25 objects live already or memory is out.
    template <typename... Arguments>
    Object* insert(Arguments&&... arguments) {
        Slot* slot = free_;
        Free next;
        if (slot != nullptr) [[likely]] {
            next = slot->free();
            free_ = next.slot;
        } else if ((slot = fresh(next)) == nullptr) {
            return nullptr;
        }
        Object* object = new (slot->storage) Object(std::forward<Arguments>(arguments)...);
        slot->handle = next.handle;
        ++live_;
        return object;
    }

    void remove(Object& object) {
        Slot* slot = Slot::of(object);
        object.~Object();
        std::uintptr_t next = slot->handle + (std::uintptr_t{1} << 32);
        if ((next & short_handle) != 0) [[unlikely]] {
            next = (next & ~short_handle) + (std::uintptr_t{1} << 32);
        }
        slot->handle = 0;
        slot->set_free({free_, next});
        free_ = slot;
        --live_;
    }

    // The handle of an object of this table.
    static void* handle_of(const Object& object) {
        return reinterpret_cast<void*>(Slot::of(object)->handle);
    }

    // The handle of a Fortran integer, or null when nothing lives there.
    void* from_integer(std::uint32_t integer) const {
        Slot* slot = slot_of(integer);
        return slot != nullptr ? reinterpret_cast<void*>(slot->handle) : nullptr;
    }

    std::size_t live() const { return live_; }

    // Visits every live object; the visitor may remove the one that it is given.
    template <typename Visitor>
    void for_each(Visitor visit) {
        for (std::uint32_t index = 0; index < made_; ++index) {
            Slot* slot = slot_of(index + first_handle);
            if (slot->handle != 0) {
                visit(*slot->object());
            }
        }
    }

  private:
    struct Slot;
    // The link that a free slot holds in its object's place.
    struct Free {
        Slot* slot;            // the next free one
        std::uintptr_t handle; // of the object that lives here next
    };
    struct Slot {
        static_assert(sizeof(Object) >= sizeof(Free));

        alignas(Object) std::byte storage[sizeof(Object)];
        std::uintptr_t handle; // of the object that lives here, or 0

        Free free() const {
            Free found;
            std::memcpy(&found, storage, sizeof found);
            return found;
        }
        void set_free(const Free& made) { std::memcpy(storage, &made, sizeof made); }
        Object* object() { return std::launder(reinterpret_cast<Object*>(storage)); }
        static Slot* of(Object& object) { return reinterpret_cast<Slot*>(&object); }
        static const Slot* of(const Object& object) {
            return reinterpret_cast<const Slot*>(&object);
        }
    };

    // Two chunks hold 4 slots each, the next two 8, then 16, …: constant-time look-up, nothing
    // moves, and at most a third of the slots have no object yet.
    static constexpr std::uint32_t first_chunk_bits = 2;
    static constexpr std::uint32_t chunk_limit = 44;

    // Where slot number `index` is: of a position from 8 on, the highest bit and the one below it
    // say the chunk, the rest the place in it.
    struct Place {
        std::uint32_t bits; // of the rest
        std::uint32_t chunk;
        std::uint32_t slot;
    };
    static Place place_of(std::uint32_t index) {
        const std::uint32_t position = index + (2U << first_chunk_bits);
        const auto bits = 30U - static_cast<std::uint32_t>(__builtin_clz(position));
        return {bits, 2 * (bits - first_chunk_bits) + (position >> bits) - 2,
                position & ((1U << bits) - 1)};
    }

    Slot* slot_of(std::uint32_t integer) const {
        const std::uint32_t index = integer - first_handle;
        if (index >= made_.load(std::memory_order_acquire)) [[unlikely]] {
            return nullptr; // also of integers below first_handle, which are large then
        }
        const Place place = place_of(index);
        if (place.chunk >= chunk_limit) {
            __builtin_unreachable(); // made_ would be larger than what all chunks hold
        }
        return chunks_[place.chunk] + place.slot;
    }

    // The first slot that nothing has lived in yet, and what its object's handle will be; null when
    // memory is out.
    Slot* fresh(Free& first) {
        const std::uint32_t index = made_.load(std::memory_order_relaxed);
        const Place place = place_of(index);
        if (place.chunk == chunk_limit) {
            return nullptr;
        }
        Slot*& chunk = chunks_[place.chunk];
        if (chunk == nullptr) {
            chunk = new (std::nothrow) Slot[std::size_t{1} << place.bits];
            if (chunk == nullptr) {
                return nullptr;
            }
        }
        Slot* slot = chunk + place.slot;
        slot->handle = 0;
        // Generation 1, not 0, so that no handle is ever a small number.
        first = {nullptr, (std::uintptr_t{1} << 32) | (index + first_handle)};
        // Pairs with the acquire in slot_of: whoever sees the count sees the slot and its chunk.
        made_.store(index + 1, std::memory_order_release);
        return slot;
    }

    Slot* chunks_[chunk_limit] = {};
    std::atomic<std::uint32_t> made_{0};
    std::size_t live_ = 0;
    Slot* free_ = nullptr;
};

} // namespace warren
