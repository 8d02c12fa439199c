#include "image/address_table.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <vector>

#include "image/module.hpp"
#include "image/test_files.hpp"

namespace warren::image {

namespace {

// Modules at made-up addresses, which nobody maps.
class Modules {
  public:
    explicit Modules(std::size_t count) {
        FilePointer file;
        EXPECT_FALSE(open_file(fixture("plain"), file));
        span_ = file->span();
        for (std::size_t i = 0; i < count; ++i) {
            modules_.push_back(std::make_unique<Module>());
            modules_.back()->file = file;
            modules_.back()->start = reinterpret_cast<std::byte*>((i + 1) * 2 * span_);
        }
    }
    Modules(const Modules&) = delete;
    Modules& operator=(const Modules&) = delete;
    ~Modules() {
        for (const auto& module : modules_) {
            module->start = nullptr; // not ours to unmap
        }
    }

    Module* operator[](std::size_t i) const { return modules_[i].get(); }
    // Every step-th from the first on.
    std::vector<Module*> some(std::size_t first, std::size_t step) const {
        std::vector<Module*> chosen;
        for (std::size_t i = first; i < modules_.size(); i += step) {
            chosen.push_back(modules_[i].get());
        }
        return chosen;
    }
    std::size_t span() const { return span_; }

  private:
    std::vector<std::unique_ptr<Module>> modules_;
    std::size_t span_ = 0;
};

TEST(AddressTable, finds_modules_by_all_their_addresses) {
    AddressTable table;
    const Modules modules(100);
    EXPECT_EQ(table.find(&table), nullptr);
    ASSERT_TRUE(table.add(modules.some(1, 2)));
    ASSERT_TRUE(table.add(modules.some(0, 2)));
    for (std::size_t i = 0; i < 100; ++i) {
        const std::byte* start = modules[i]->start;
        EXPECT_EQ(table.find(start), modules[i]);
        EXPECT_EQ(table.find(start + modules.span() - 1), modules[i]);
        EXPECT_EQ(table.find(start + modules.span()), nullptr);
        EXPECT_EQ(table.find(start - 1), nullptr);
    }
    table.remove(modules.some(0, 3));
    for (std::size_t i = 0; i < 100; ++i) {
        EXPECT_EQ(table.find(modules[i]->start), i % 3 == 0 ? nullptr : modules[i]);
    }
}

TEST(AddressTable, visits_each_module_once) {
    AddressTable table;
    const Modules modules(10);
    ASSERT_TRUE(table.add(modules.some(0, 1)));
    std::size_t visited = 0;
    table.for_each([&](const Module& module) { EXPECT_EQ(&module, modules[visited++]); });
    EXPECT_EQ(visited, 10U);
}

TEST(AddressTable, is_right_for_readers_while_others_change_it) {
    AddressTable table;
    const Modules modules(64);
    const std::vector<Module*> constant = modules.some(0, 2);
    const std::vector<Module*> coming_and_going = modules.some(1, 2);
    ASSERT_TRUE(table.add(constant));
    std::atomic<bool> done{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> readers;
    for (std::size_t reader = 0; reader < 2; ++reader) {
        readers.emplace_back([&, reader] {
            for (std::size_t i = reader; !done.load(); i = (i + 7) % 64) {
                const Module* found = table.find(modules[i]->start + i);
                const bool right = found == modules[i] || (i % 2 == 1 && found == nullptr);
                wrong += right ? 0 : 1;
            }
        });
    }
    for (int round = 0; round < 3000; ++round) {
        ASSERT_TRUE(table.add(coming_and_going));
        table.remove(coming_and_going);
    }
    done = true;
    for (std::thread& reader : readers) {
        reader.join();
    }
    EXPECT_EQ(wrong, 0);
}

} // namespace

} // namespace warren::image
