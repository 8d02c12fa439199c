// Rules of `warren run`, from their text to the plan that the preloaded library reads.
#include "memory/preload/rules.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "memory/preload/plan.hpp"
#include "memory/preload/source_files.hpp"
#include "memory/preload/symbol_name.hpp"

namespace warren::memory {
namespace {

std::string reason(Error error) {
    return error ? std::unique_ptr<ErrorRecord>(error.take())->text : "";
}

// Why the text is refused.
std::string refused(const std::string& text) {
    std::vector<Rule> rules;
    return reason(parse_rules(text, "own", rules));
}

TEST(Rules, say_sizes_places_and_criteria) {
    std::vector<Rule> rules;
    ASSERT_FALSE(
        parse_rules("# a comment\n"
                    "\n"
                    "size>=1M size<4M function=solve*  -> bandwidth,capacity full=strict\r\n"
                    "\tsize=64k..1G library=libblas* file=a/?.c->latency from=core:3 # why\n"
                    "size=7 -> system\n"
                    "size>18446744073709551614 -> system\n"
                    "default -> capacity",
                    "own", rules));
    ASSERT_EQ(rules.size(), 5U);
    EXPECT_EQ(rules[0].line, 3U);
    EXPECT_EQ(rules[0].least, 1U << 20);
    EXPECT_EQ(rules[0].most, (4U << 20) - 1);
    EXPECT_EQ(rules[0].function, "solve*");
    EXPECT_EQ(rules[0].criteria, "bandwidth,capacity full=strict");
    EXPECT_EQ(rules[1].least, 64U << 10);
    EXPECT_EQ(rules[1].most, 1U << 30);
    EXPECT_EQ(rules[1].library, "libblas*");
    EXPECT_EQ(rules[1].file, "a/?.c");
    EXPECT_EQ(rules[1].criteria, "latency from=core:3");
    EXPECT_EQ(rules[2].least, 7U);
    EXPECT_EQ(rules[2].most, 7U);
    EXPECT_EQ(rules[2].criteria, "system");
    EXPECT_EQ(rules[3].least, UINT64_MAX);
    EXPECT_EQ(rules[4].line, 7U);
    EXPECT_EQ(rules[4].most, UINT64_MAX);
}

TEST(Rules, that_are_wrong_are_refused_with_line_and_reason) {
    EXPECT_EQ(refused("\nsize>1k bandwidth"),
              "own:2: there is no -> between conditions and criteria");
    EXPECT_EQ(refused("-> bandwidth"), "own:1: there is no condition; 'default' fits everything");
    EXPECT_EQ(refused("default ->  # none"),
              "own:1: there are no criteria; 'system' is the system's malloc");
    EXPECT_EQ(refused("colour=red -> bandwidth"),
              "own:1: 'colour=red' is no condition: size, function=, library=, file= or default");
    EXPECT_EQ(refused("size~4 -> bandwidth"), "own:1: behind 'size' come <, <=, >, >= or =");
    for (const char* size : {"size>", "size>x", "size>4T", "size=1..", "size=..4", "size>-1",
                             "size>99999999999999999999", "size>99999999999G", "size>4 k"}) {
        const std::string why = refused(std::string(size) + " -> bandwidth");
        EXPECT_TRUE(why.find("no number of bytes") != std::string::npos ||
                    why.find("'k' is no condition") != std::string::npos)
            << size << ": " << why;
    }
    EXPECT_EQ(refused("size>4 size<3 -> bandwidth"), "own:1: no size fits");
    EXPECT_EQ(refused("size<0 -> bandwidth"), "own:1: no size is less than 0");
    EXPECT_EQ(refused("size>18446744073709551615 -> latency"), "own:1: no size is as large");
    EXPECT_EQ(refused("function= -> latency"), "own:1: there is no pattern behind 'function='");
    EXPECT_EQ(refused("file=a file=b -> latency"), "own:1: file is there twice");
    EXPECT_EQ(refused("default -> latency\n#\nsize<4 -> system"),
              "own:3: nothing comes here: the rule of line 1 fits everything");
    EXPECT_NE(refused("default -> latency full=perhaps").find("own:1: "), std::string::npos);
    EXPECT_EQ(refused(std::string("size<4\0 -> system", 17)), "own:1: this is no text");
    std::string many;
    for (unsigned i = 0; i < rule_limit; ++i) {
        many += "size=" + std::to_string(i) + " -> system\n";
    }
    EXPECT_EQ(refused(many), "own:63: there are more than 62 rules");
}

TEST(Rules, come_to_a_plan_that_says_the_same) {
    Machine* machine = nullptr;
    ASSERT_FALSE(Machine::here(machine));
    std::vector<Rule> rules;
    ASSERT_FALSE(parse_rules("size<4k -> system\n"
                             "function=f library=l* file=x.c -> capacity full=strict\n"
                             "size>1M -> capacity full=strict\n"
                             "default -> latency",
                             "own", rules));
    std::string text;
    ASSERT_EQ(reason(make_plan(*machine, rules, "own", {.children = true}, text)), "");
    Plan plan;
    ASSERT_TRUE(plan.read(text.data())) << text;
    EXPECT_TRUE(plan.children);
    EXPECT_FALSE(plan.report);
    EXPECT_TRUE(plan.by_site);
    ASSERT_EQ(plan.rule_count, 4U);
    EXPECT_EQ(plan.criteria_count, 2U);
    EXPECT_EQ(plan.rules[0].criteria, systems);
    EXPECT_EQ(plan.rules[0].most, 4095U);
    EXPECT_STREQ(plan.rules[1].site.function, "f");
    EXPECT_STREQ(plan.rules[1].site.library, "l*");
    EXPECT_STREQ(plan.rules[1].site.file, "x.c");
    EXPECT_EQ(plan.rules[1].criteria, plan.rules[2].criteria);
    EXPECT_EQ(plan.rules[3].line, 4U);
    const Kind& kind = plan.kinds[plan.criteria[plan.rules[2].criteria].kind];
    EXPECT_EQ(kind.policy, Policy::strict);
    EXPECT_GE(kind.count, 1U);
}

TEST(Rules, that_this_machine_can_not_follow_are_refused) {
    Machine* machine = nullptr;
    ASSERT_FALSE(Machine::here(machine));
    std::vector<Rule> rules;
    ASSERT_FALSE(parse_rules("size>1 -> capacity\ndefault -> sweetness", "own", rules));
    std::string text;
    EXPECT_NE(reason(make_plan(*machine, rules, "own", {}, text)).find("own:2: "),
              std::string::npos);
    ASSERT_FALSE(parse_rules("default -> capacity from=core:99999", "own", rules));
    EXPECT_NE(reason(make_plan(*machine, rules, "own", {}, text)).find("own:1: "),
              std::string::npos);
    warren_topology* other = nullptr;
    ASSERT_EQ(warren_topology_open("synthetic:core:2 pu:1", &other, nullptr), 0);
    EXPECT_NE(reason(make_plan(Machine(other, true), rules, "own", {}, text)).find("another"),
              std::string::npos);
}

// Words of rules in any order, and damaged: refused with the line, or taken, and then a plan comes
// of it that is read, or refused, damaged as well. Goes on for WARREN_FUZZ_SECONDS.
TEST(Rules, nothing_that_is_written_breaks_them) {
    Machine* machine = nullptr;
    ASSERT_FALSE(Machine::here(machine));
    const char* parts[] = {
        "size",     ">=",        "<",        "=",           "1M",
        "4k..8k",   "..",        "function", "function=f",  " ",
        "file=a*b", "library=?", "default",  "->",          " -> ",
        "\n",       "system",    "capacity", "latency",     " full=",
        "strict",   "~10%",      "#",        "from=cpus:0", "18446744073709551615",
        "\t",       "\xff",      ",",        "size>1 ",     "\nsize<2k -> system\n"};
    const char* seconds = std::getenv("WARREN_FUZZ_SECONDS");
    const std::time_t end = std::time(nullptr) + (seconds != nullptr ? std::atoi(seconds) : 0);
    std::mt19937 random(seconds != nullptr ? static_cast<unsigned>(end) : 5);
    std::size_t tried = 0;
    std::size_t taken = 0;
    std::size_t read = 0;
    std::size_t plans = 0;
    constexpr std::size_t most_plans = 20'000;
    do {
        for (int round = 0; round < 2000; ++round, ++tried) {
            std::string text;
            for (std::size_t part = random() % 12; part > 0; --part) {
                text += parts[random() % std::size(parts)];
            }
            if (random() % 2 == 0) {
                text += "\nsize>" + std::to_string(random() % 100) + "k -> capacity";
            }
            if (!text.empty() && random() % 4 == 0) {
                text[random() % text.size()] = static_cast<char>(random());
            }
            std::vector<Rule> rules;
            const std::string why = refused(text);
            if (!why.empty()) {
                ASSERT_EQ(why.find("own:"), 0U) << why;
                continue;
            }
            ASSERT_FALSE(parse_rules(text, "own", rules));
            if (tried % 64 != 0 || ++plans > most_plans) {
                ++taken;
                continue; // plans are work
            }
            std::string plan_text;
            if (!reason(make_plan(*machine, rules, "own", {}, plan_text)).empty()) {
                continue;
            }
            ++taken;
            Plan plan;
            std::string copy = plan_text;
            ASSERT_TRUE(plan.read(copy.data())) << plan_text;
            ASSERT_EQ(plan.rule_count, rules.size());
        }
        // Damaged plans; what is read stays, so they are not many.
        for (int round = 0; round < 100 && plans < most_plans; ++round, ++plans) {
            std::string text = "warren-memory-1 1\nkind 0 0 0 1 0\ncriteria 0\n"
                               "rule 1 0 4095 system function=f\nrule 2 5 900 0 file=x.c\n";
            for (std::size_t change = random() % 4 + 1; change > 0; --change) {
                text[random() % text.size()] = "0123456789 :-\nkcr=*"[random() % 19];
            }
            Plan plan;
            read += plan.read(text.data());
        }
    } while (std::time(nullptr) < end);
    EXPECT_GT(taken, tried / 50);
    EXPECT_LT(taken, tried);
    EXPECT_GT(read, 0U);
    std::printf("%zu files of rules, %zu of them taken\n", tried, taken);
}

TEST(Plan, of_several_places_differs_by_processor) {
    std::string text = "warren-memory-1 2 report\nkind 0 0 0 1 3 1\nkind 1 2 21 2 0 1 2\n"
                       "criteria 0-3:1 8-9:0\nrule 0 0 18446744073709551615 0\n";
    Plan plan;
    ASSERT_TRUE(plan.read(text.data()));
    EXPECT_TRUE(plan.report);
    EXPECT_EQ(plan.kinds[1].reserved_shift, 21);
    ASSERT_TRUE(plan.criteria[0].by_processor);
    EXPECT_EQ(plan.criteria[0].kind_on[3], 1U);
    EXPECT_EQ(plan.criteria[0].kind_on[9], 0U);
    EXPECT_EQ(plan.criteria[0].kind_on[7], 1U); // that nobody names
    EXPECT_EQ(plan.kinds[1].policy, Policy::interleave);
    EXPECT_EQ(plan.kinds[1].equals, 2U);
    EXPECT_EQ(plan.kinds[0].targets[0], 3);
}

TEST(Plan, that_is_damaged_is_refused) {
    for (const char* text :
         {"", "x", "warren-memory-2 0", "warren-memory-1", "warren-memory-1 1",
          "warren-memory-1 99999", "warren-memory-1 1\nkind 1 0 0 1 0",
          "warren-memory-1 1\nkind 0 3 0 1 0", "warren-memory-1 1\nkind 0 0 0 2 0",
          "warren-memory-1 1\nkind 0 0 0 1 1024", "warren-memory-1 1\nkind 0 0 0 1 0\ncriteria",
          "warren-memory-1 1\nkind 0 0 0 1 0\ncriteria 1",
          "warren-memory-1 1\nkind 0 0 0 1 0\ncriteria 3-2:0",
          "warren-memory-1 1\nkind 0 0 0 1 0\ncriteria 0-9999:0",
          "warren-memory-1 1\nkind 0 0 0 1 0\ncriteria 0 0", "warren-memory-1 0\nrule 1 0 5",
          "warren-memory-1 0\nrule 1 0 5 0", "warren-memory-1 0\nrule 1 0 5 system colour=red",
          "warren-memory-1 0\nwhat"}) {
        std::string copy = text;
        Plan plan;
        EXPECT_FALSE(plan.read(copy.data())) << text;
    }
}

TEST(Patterns, have_stars_and_question_marks) {
    EXPECT_TRUE(matches("solve", "solve"));
    EXPECT_TRUE(matches("*", ""));
    EXPECT_TRUE(matches("s*e", "solve"));
    EXPECT_TRUE(matches("*l*v*", "solve"));
    EXPECT_TRUE(matches("s?lve*", "solve"));
    EXPECT_TRUE(matches("*aab", "aaaab"));
    EXPECT_FALSE(matches("solve", "solver"));
    EXPECT_FALSE(matches("solver", "solve"));
    EXPECT_FALSE(matches("?", ""));
    EXPECT_FALSE(matches("", "x"));
    EXPECT_FALSE(matches("s*x", "solve"));
}

std::string name_in(const char* symbol) {
    char name[64];
    return qualified_name(symbol, name, sizeof name) ? name : "";
}

TEST(SymbolNames, are_qualified_names_without_parameters) {
    EXPECT_EQ(name_in("_Z5solvei"), "solve");
    EXPECT_EQ(name_in("_ZL5solvev"), "solve");
    EXPECT_EQ(name_in("_ZN4grid5Level6resizeEm"), "grid::Level::resize");
    EXPECT_EQ(name_in("_ZNK4grid5Level4sizeEv"), "grid::Level::size");
    EXPECT_EQ(name_in("_ZN4grid5LevelC2Em"), "grid::Level::Level");
    EXPECT_EQ(name_in("_ZN12_GLOBAL__N_14fillEv"), "fill");
    EXPECT_EQ(name_in("_ZNSt6thread4joinEv"), "std::thread::join");
    EXPECT_EQ(name_in("solve"), "");
    EXPECT_EQ(name_in("_Z5solveIiEvT_"), "");     // a template
    EXPECT_EQ(name_in("_ZN4grid5LevelplEi"), ""); // an operator
    EXPECT_EQ(name_in("_Z999x"), "");
    EXPECT_EQ(name_in("_ZN4grid"), "");
    EXPECT_EQ(name_in("_Z"), "");
    EXPECT_EQ(name_in("_Z64abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdv"), "");
}

// A compilation in the form of version 5, with its name behind another attribute.
TEST(SourceFiles, are_what_the_debugging_information_says) {
    const char abbreviations[] = "\x02\x11\x01\x25\x0e\x00\x00" // another one
                                 "\x01\x11\x01\x13\x0b\x03\x1f\x21\x21\x05\x00\x00\x00";
    const char info[] = "\x10\x00\x00\x00\x05\x00\x01\x08\x00\x00\x00\x00\x01\x1d\x04\x00\x00\x00"
                        "\x00\x00";
    const char strings[] = "one\0src/grid.cpp";
    const char ranges[] = "\x2c\x00\x00\x00\x02\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00"
                          "\x00\x10\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00"
                          "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    const DebugSections debug{{info, sizeof info - 1},
                              {abbreviations, sizeof abbreviations},
                              {},
                              {strings, sizeof strings},
                              {ranges, sizeof ranges}};
    EXPECT_STREQ(source_file_of(debug, 0), "src/grid.cpp");
    EXPECT_EQ(source_file_of(debug, 1000), nullptr);
    std::vector<std::uint64_t> found;
    const SourceFileSearch search{
        &found,
        [](void*, const char* path) {
            return std::uint64_t{std::strcmp(path, "src/grid.cpp") == 0 ? 5U : 0U};
        },
        [](void* self, std::uint64_t wanted, std::uint64_t begin, std::uint64_t end) {
            *static_cast<std::vector<std::uint64_t>*>(self) = {wanted, begin, end};
        }};
    find_source_files(debug, search);
    EXPECT_EQ(found, (std::vector<std::uint64_t>{5, 0x1000, 0x1040}));
    // Cut anywhere and changed anywhere, it is survived.
    for (std::size_t at = 0; at < sizeof info; ++at) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            std::string changed(info, sizeof info - 1);
            changed[at % changed.size()] =
                static_cast<char>(changed[at % changed.size()] ^ 1 << bit);
            DebugSections damaged = debug;
            damaged.info = {changed.data(), changed.size()};
            find_source_files(damaged, search);
            damaged.info.bytes = at;
            find_source_files(damaged, search);
        }
    }
    for (std::size_t bytes = 0; bytes < sizeof ranges; ++bytes) {
        DebugSections damaged = debug;
        damaged.ranges.bytes = bytes;
        damaged.abbreviations.bytes = bytes / 3;
        find_source_files(damaged, search);
    }
}

} // namespace
} // namespace warren::memory
