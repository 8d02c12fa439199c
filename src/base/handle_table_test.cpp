#include "base/handle_table.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace warren {
namespace {

// An object that counts how many of its kind live.
struct Counted {
    Counted(int& living, int value) : count(living), number(value) { ++count; }
    ~Counted() { --count; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

    int& count;
    int number;
};

using Table = HandleTable<Counted>;

std::uintptr_t bits_of(const void* handle) {
    return reinterpret_cast<std::uintptr_t>(handle);
}

const void* handle_with(std::uintptr_t bits) {
    return reinterpret_cast<const void*>(bits);
}

TEST(HandleTable, finds_an_object_by_its_handle) {
    int living = 0;
    Table table;
    Counted* one = table.insert(living, 1);
    Counted* two = table.insert(living, 2);
    EXPECT_EQ(table.find(Table::handle_of(*one)), one);
    EXPECT_EQ(table.find(Table::handle_of(*two)), two);
    EXPECT_EQ(table.live(), 2U);
    EXPECT_EQ(living, 2);
}

TEST(HandleTable, finds_an_object_by_the_short_form_of_its_handle_only_while_it_lives) {
    int living = 0;
    Table table;
    constexpr std::uintptr_t kept = ((std::uintptr_t{1} << 32 << short_generation_bits) - 1);
    Counted* one = table.insert(living, 1);
    std::uintptr_t former = short_handle | (bits_of(Table::handle_of(*one)) & kept);
    EXPECT_EQ(table.find(handle_with(former)), one);
    // Each of the next lives of the slot has another short form, until all have been used.
    for (int life = 1; life < 1 << short_generation_bits; ++life) {
        table.remove(*one);
        EXPECT_EQ(table.find(handle_with(former)), nullptr);
        one = table.insert(living, life);
        EXPECT_EQ(table.find(handle_with(former)), nullptr) << life;
        EXPECT_EQ(bits_of(Table::handle_of(*one)) & short_handle, 0U);
    }
    table.remove(*one);
    one = table.insert(living, 2);
    EXPECT_EQ(table.find(handle_with(former)), one);
}

TEST(HandleTable, a_whole_look_up_takes_no_short_form) {
    int living = 0;
    Table table;
    Counted* one = table.insert(living, 1);
    const void* whole = Table::handle_of(*one);
    constexpr std::uintptr_t kept = ((std::uintptr_t{1} << 32 << short_generation_bits) - 1);
    const void* short_form = handle_with(short_handle | (bits_of(whole) & kept));
    EXPECT_EQ(table.find_whole(whole), one);
    EXPECT_EQ(table.find_whole(short_form), nullptr);
    EXPECT_EQ(table.find_short(short_form), one);
    table.remove(*one);
    EXPECT_EQ(table.find_whole(whole), nullptr);
    EXPECT_EQ(table.find_short(short_form), nullptr);
}

TEST(HandleTable, handles_differ_from_predefined_ones_and_small_numbers) {
    int living = 0;
    Table table;
    for (int i = 0; i < 100; ++i) {
        const std::uintptr_t bits = bits_of(Table::handle_of(*table.insert(living, i)));
        EXPECT_GE(bits & 0xFFFFFFFF, first_handle);
        EXPECT_NE(bits >> 32, 0U);
    }
    for (std::uintptr_t bits = 0; bits < 2 * first_handle; ++bits) {
        EXPECT_EQ(table.find(handle_with(bits)), nullptr) << bits;
    }
}

TEST(HandleTable, a_freed_handle_is_not_found_even_when_its_slot_lives_again) {
    int living = 0;
    Table table;
    Counted* first = table.insert(living, 1);
    std::set<const void*> freed;
    for (int life = 0; life < 1000; ++life) {
        const void* handle = Table::handle_of(*first);
        EXPECT_TRUE(freed.insert(handle).second) << "a handle came twice";
        table.remove(*first);
        EXPECT_EQ(table.find(handle), nullptr);
        EXPECT_EQ(table.insert(living, life), first) << "the slot freed last is used first";
        EXPECT_EQ(table.find(handle), nullptr);
    }
    EXPECT_EQ(living, 1);
}

// Neither of slots that never lived, nor of slots that do no longer, whatever the generation says.
TEST(HandleTable, invented_handles_are_not_found) {
    int living = 0;
    Table table;
    table.insert(living, 1);
    Counted* dead = table.insert(living, 2);
    table.remove(*dead);
    for (std::uintptr_t generation = 0; generation < 5; ++generation) {
        for (std::uintptr_t index = 1; index < 200; ++index) {
            const std::uintptr_t bits = generation << 32 | (first_handle + index);
            EXPECT_EQ(table.find(handle_with(bits)), nullptr) << std::hex << bits;
        }
    }
    for (std::uintptr_t bits : {~std::uintptr_t{0}, std::uintptr_t{0xFFFFFFFF},
                                std::uintptr_t{1} << 63, std::uintptr_t{1} << 32}) {
        EXPECT_EQ(table.find(handle_with(bits)), nullptr) << std::hex << bits;
    }
}

TEST(HandleTable, an_empty_table_finds_nothing) {
    const Table table;
    EXPECT_EQ(table.find(nullptr), nullptr);
    EXPECT_EQ(table.find(handle_with(std::uintptr_t{1} << 32 | first_handle)), nullptr);
    EXPECT_EQ(table.from_integer(first_handle), nullptr);
}

TEST(HandleTable, objects_stay_where_they_are_while_it_grows) {
    constexpr int objects = 100'000;
    int living = 0;
    Table table;
    std::vector<Counted*> made;
    std::vector<void*> handles;
    for (int i = 0; i < objects; ++i) {
        made.push_back(table.insert(living, i));
        handles.push_back(Table::handle_of(*made.back()));
    }
    EXPECT_EQ(table.live(), static_cast<std::size_t>(objects));
    for (std::size_t i = 0; i < objects; ++i) {
        ASSERT_EQ(table.find(handles[i]), made[i]);
        ASSERT_EQ(made[i]->number, static_cast<int>(i));
    }
    EXPECT_EQ(std::set<void*>(handles.begin(), handles.end()).size(), handles.size());
}

TEST(HandleTable, the_lower_half_of_a_handle_leads_back_to_it) {
    int living = 0;
    Table table;
    Counted* one = table.insert(living, 1);
    table.remove(*table.insert(living, 2));
    void* handle = Table::handle_of(*one);
    const auto integer = static_cast<std::uint32_t>(bits_of(handle));
    EXPECT_EQ(table.from_integer(integer), handle);
    EXPECT_EQ(table.from_integer(integer + 1), nullptr) << "it lives no longer";
    EXPECT_EQ(table.from_integer(integer + 1000), nullptr);
    EXPECT_EQ(table.from_integer(0), nullptr);
    EXPECT_EQ(table.from_integer(0xFFFFFFFF), nullptr);
    table.remove(*one);
    EXPECT_EQ(table.from_integer(integer), nullptr);
}

TEST(HandleTable, a_visit_sees_every_live_object_once_and_may_remove_it) {
    int living = 0;
    Table table;
    std::vector<Counted*> made;
    for (int i = 0; i < 100; ++i) {
        made.push_back(table.insert(living, i));
    }
    for (std::size_t i = 0; i < made.size(); i += 3) {
        table.remove(*made[i]);
    }
    std::multiset<int> seen;
    table.for_each([&](Counted& object) {
        seen.insert(object.number);
        if (object.number % 2 == 0) {
            table.remove(object);
        }
    });
    EXPECT_EQ(seen.size(), 66U);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(seen.count(i), i % 3 == 0 ? 0U : 1U) << i;
    }
    EXPECT_EQ(living, 33);
    EXPECT_EQ(table.live(), 33U);
    table.for_each([](const Counted& object) { EXPECT_EQ(object.number % 2, 1); });
}

TEST(HandleTable, its_end_ends_its_objects) {
    int living = 0;
    {
        Table table;
        for (int i = 0; i < 50; ++i) {
            table.insert(living, i);
        }
    }
    EXPECT_EQ(living, 0);
}

} // namespace
} // namespace warren
