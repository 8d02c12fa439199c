#include "base/late_handle_table.hpp"

#include <gtest/gtest.h>

namespace warren {
namespace {

struct Numbered {
    explicit Numbered(int value) : number(value) {}
    int number;
    void* room[2] = {};
};

using Table = LateHandleTable<Numbered>;

TEST(LateHandleTable, finds_nothing_and_has_no_table_before_its_first_object) {
    Table table;
    static_assert(sizeof table == sizeof(void*));
    EXPECT_EQ(table.find(reinterpret_cast<const void*>((std::uintptr_t{1} << 32) | first_handle)),
              nullptr);
    EXPECT_EQ(table.from_integer(first_handle), nullptr);
    EXPECT_EQ(table.live(), 0U);
    int visited = 0;
    table.for_each([&](Numbered&) { ++visited; });
    EXPECT_EQ(visited, 0);
}

TEST(LateHandleTable, is_a_handle_table_from_its_first_object_on) {
    Table table;
    Numbered* one = table.insert(1);
    Numbered* two = table.insert(2);
    void* const handle = Table::handle_of(*one);
    EXPECT_EQ(table.find(handle), one);
    EXPECT_EQ(table.find(handle)->number, 1);
    EXPECT_EQ(table.from_integer(first_handle), handle);
    EXPECT_EQ(table.live(), 2U);
    table.remove(*one);
    EXPECT_EQ(table.find(handle), nullptr);
    int sum = 0;
    table.for_each([&](const Numbered& visited) { sum += visited.number; });
    EXPECT_EQ(sum, two->number);
}

} // namespace
} // namespace warren
