// LateHandleTable: a HandleTable that has no memory before its first object, for the kinds of which
// most programs make none: a rank has several, and a node many ranks. Each look-up goes by one
// pointer more. Thread rule: that of HandleTable.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "base/handle_table.hpp"

namespace warren {

template <typename Object>
class LateHandleTable {
  public:
    LateHandleTable() = default;
    LateHandleTable(const LateHandleTable&) = delete;
    LateHandleTable& operator=(const LateHandleTable&) = delete;
    ~LateHandleTable() { delete table_.load(std::memory_order_relaxed); }

    Object* find(const void* handle) const {
        const Table* table = made();
        return table != nullptr ? table->find(handle) : nullptr;
    }

    template <typename... Arguments>
    Object* insert(Arguments&&... arguments) {
        Table* table = made();
        if (table == nullptr) {
            table = new (std::nothrow) Table;
            if (table == nullptr) {
                return nullptr;
            }
            table_.store(table, std::memory_order_release); // pairs with made()
        }
        return table->insert(std::forward<Arguments>(arguments)...);
    }

    void remove(Object& object) { made()->remove(object); }

    static void* handle_of(const Object& object) { return Table::handle_of(object); }

    void* from_integer(std::uint32_t integer) const {
        const Table* table = made();
        return table != nullptr ? table->from_integer(integer) : nullptr;
    }

    std::size_t live() const {
        const Table* table = made();
        return table != nullptr ? table->live() : 0;
    }

    template <typename Visitor>
    void for_each(Visitor visit) {
        if (Table* table = made()) {
            table->for_each(visit);
        }
    }

  private:
    using Table = HandleTable<Object>;

    // A find() beside the first insert() sees the whole table, or none.
    Table* made() const { return table_.load(std::memory_order_acquire); }

    std::atomic<Table*> table_{nullptr};
};

} // namespace warren
