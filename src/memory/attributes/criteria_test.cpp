#include "memory/attributes/criteria.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <gtest/gtest.h>
#include <random>
#include <sched.h>
#include <string>
#include <utility>

namespace warren::memory {
namespace {

std::string sentence(Error error) {
    ErrorRecord* record = error.take();
    std::string text = record != nullptr ? record->text : "";
    delete record;
    return text;
}

TEST(Criteria, ATextSaysWhatTheFunctionsSet) {
    Criteria criteria;
    ASSERT_FALSE(parse_criteria("latency~10%,capacity,flops;from=core:3 page=2M\tfull=strict "
                                "targets=local+cpuless",
                                criteria));
    ASSERT_EQ(criteria.terms.size(), 3U);
    EXPECT_EQ(criteria.terms[0].attribute, WARREN_MEM_LATENCY);
    EXPECT_DOUBLE_EQ(criteria.terms[0].tolerance, 0.1);
    EXPECT_EQ(criteria.terms[1].attribute, WARREN_MEM_CAPACITY);
    EXPECT_LT(criteria.terms[1].tolerance, 0);
    EXPECT_EQ(criteria.terms[2].attribute, -1);
    EXPECT_EQ(criteria.terms[2].name, "flops");
    EXPECT_EQ(criteria.initiator.type, "core");
    EXPECT_EQ(criteria.initiator.index, 3U);
    EXPECT_EQ(criteria.page_bytes, 2U << 20);
    EXPECT_EQ(criteria.policy, WARREN_MEM_STRICT);
    EXPECT_EQ(criteria.targets, unsigned{WARREN_MEM_LOCAL | WARREN_MEM_CPULESS});
    EXPECT_EQ(criteria.text(),
              "latency~10%,capacity,flops from=core:3 full=strict page=2M targets=local+cpuless");
}

TEST(Criteria, NothingSaidIsTheNearestMemory) {
    Criteria criteria;
    ASSERT_FALSE(parse_criteria("  ; ", criteria));
    EXPECT_TRUE(criteria.terms.empty());
    EXPECT_EQ(criteria.initiator.kind, Initiator::Kind::here);
    EXPECT_EQ(criteria.policy, WARREN_MEM_NEXT);
    EXPECT_EQ(criteria.targets, unsigned{WARREN_MEM_LOCAL | WARREN_MEM_REMOTE});
    EXPECT_EQ(criteria.text(), "");
}

TEST(Criteria, MistakesAreNamed) {
    const std::pair<const char*, const char*> mistakes[] = {
        {"latency,,capacity", "''"},
        {"latency capacity", "'capacity'"},
        {"latency~", "'latency~'"},
        {"latency~10", "'latency~10'"},
        {"latency~-1%", "'latency~-1%'"},
        {"latency~1001%", "'latency~1001%'"},
        {"latency~nan%", "nan"},
        {"9lives", "'9lives'"},
        {"from=", "''"},
        {"from=core", "'core'"},
        {"from=core:-1", "'core:-1'"},
        {"from=cpus:", "''"},
        {"from=cpus:3-1", "'3-1'"},
        {"from=cpus:8192", "'8192'"},
        {"from=cpus:1,", "'1,'"},
        {"full=never", "never"},
        {"page=0", "page=0"},
        {"page=3k", "3072"},
        {"page=2T", "2T"},
        {"page=18446744073709551615G", "18446744073709551615G"},
        {"targets=", "''"},
        {"targets=local+", "''"},
        {"targets=near", "'near'"},
        {"full=next full=next", "twice"},
        {"colour=red", "'colour=red'"},
    };
    for (const auto& [text, part] : mistakes) {
        Criteria criteria;
        const std::string said = sentence(parse_criteria(text, criteria));
        EXPECT_NE(said.find(part), std::string::npos) << text << ": " << said;
        EXPECT_EQ(criteria.revision, 0U) << text << " changed the criteria";
    }
    Criteria criteria;
    EXPECT_NE(sentence(parse_criteria(std::string(5000, ' '), criteria)), "");
    std::string many = "latency";
    for (int i = 0; i < 16; ++i) {
        many += ",latency";
    }
    EXPECT_NE(sentence(parse_criteria(many, criteria)).find("more than 16"), std::string::npos);
}

TEST(Criteria, ATextOfAnyCriteriaIsReadAsTheSame) {
    std::mt19937 random(7);
    const auto draw = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
    for (int round = 0; round < 500; ++round) {
        Criteria made;
        for (unsigned term = draw(5); term > 0; --term) {
            const double tolerance = draw(2) == 0 ? -1 : draw(1000) / 977.0;
            if (draw(4) == 0) {
                ASSERT_FALSE(made.add("mine_" + std::to_string(draw(9)), tolerance));
            } else {
                ASSERT_FALSE(made.add(static_cast<int>(draw(9)), tolerance));
            }
        }
        if (draw(2) != 0) {
            ASSERT_FALSE(made.set_processors({random(), random() | 1}));
        }
        ASSERT_FALSE(made.set_policy(static_cast<int>(draw(3))));
        const bool reserved = draw(2) != 0;
        ASSERT_FALSE(made.set_page_bytes(std::size_t{4096} << (draw(20) + reserved), reserved));
        ASSERT_FALSE(made.set_targets(1 + draw(15)));
        Criteria read;
        ASSERT_FALSE(parse_criteria(made.text(), read)) << made.text();
        EXPECT_EQ(read.text(), made.text());
        EXPECT_EQ(read.initiator, made.initiator);
        EXPECT_EQ(read.page_bytes, made.page_bytes);
        EXPECT_EQ(read.reserved, made.reserved);
        ASSERT_EQ(read.terms.size(), made.terms.size());
        for (std::size_t term = 0; term < made.terms.size(); ++term) {
            EXPECT_NEAR(read.terms[term].tolerance, made.terms[term].tolerance, 1e-12);
        }
        EXPECT_NE(read.revision, made.revision);
    }
}

// WARREN_FUZZ_SECONDS lets it run for longer.
TEST(Criteria, RandomTextsAreRefusedOrUnderstood) {
    const char* seconds = std::getenv("WARREN_FUZZ_SECONDS");
    const std::time_t end = std::time(nullptr) + (seconds != nullptr ? std::atoi(seconds) : 0);
    std::mt19937 random(seconds != nullptr ? static_cast<unsigned>(end) : 11);
    const std::string parts[] = {"latency",  "capacity", ",",    "~",     "10%",  " ", ";",
                                 "from=",    "cpus:",    "0-63", "8191",  "-",    ":", "core",
                                 "page=",    "hugetlb:", "2M",   "full=", "next", "+", "=",
                                 "targets=", "local",    "all",  "\xff",  "%"};
    std::size_t understood = 0;
    std::size_t tried = 0;
    for (; tried < 20000 || std::time(nullptr) < end; ++tried) {
        std::string text;
        for (unsigned part = random() % 8; part > 0; --part) {
            text += parts[random() % std::size(parts)];
        }
        if (!text.empty() && random() % 8 == 0) {
            text[random() % text.size()] = static_cast<char>(random());
        }
        Criteria criteria;
        if (Error error = parse_criteria(text, criteria)) {
            EXPECT_NE(sentence(error), "");
            continue;
        }
        ++understood;
        Criteria again;
        ASSERT_FALSE(parse_criteria(criteria.text(), again)) << text;
        ASSERT_EQ(again.text(), criteria.text());
    }
    EXPECT_GT(understood, 100U);
    std::printf("%zu texts, %zu of them understood\n", tried, understood);
}

TEST(CriteriaApi, ArgumentsAreChecked) {
    EXPECT_EQ(warren_mem_criteria_create(nullptr), WARREN_MEM_ERR_ARG);
    warren_mem_criteria* criteria = nullptr;
    EXPECT_EQ(warren_mem_criteria_parse(nullptr, &criteria), WARREN_MEM_ERR_ARG);
    ASSERT_EQ(warren_mem_criteria_create(&criteria), WARREN_MEM_SUCCESS);
    EXPECT_EQ(warren_mem_criteria_add(criteria, 10, 0), WARREN_MEM_ERR_ATTRIBUTE);
    EXPECT_NE(std::strstr(warren_mem_error(), "attribute 10"), nullptr);
    EXPECT_EQ(warren_mem_criteria_add(criteria, WARREN_MEM_LATENCY, 11), WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_criteria_add_named(criteria, "a b", 0), WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_criteria_set_policy(criteria, 3), WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_criteria_set_page_size(criteria, 12288), WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_criteria_set_reserved_pages(criteria, 0), WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_criteria_set_reserved_pages(criteria, 4096), WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_criteria_set_reserved_pages(nullptr, 2 << 20), WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_criteria_set_targets(criteria, 0), WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_criteria_set_targets(criteria, 16), WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_criteria_set_initiator(criteria, "core"), WARREN_MEM_ERR_ARG);
    unsigned char empty[4] = {};
    EXPECT_EQ(warren_mem_criteria_set_initiator_cpus(criteria, empty, 4), WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_criteria_add(nullptr, 0, 0), WARREN_MEM_ERR_ARG);
    warren_mem_criteria_free(criteria);
    warren_mem_criteria_free(nullptr);
}

TEST(CriteriaApi, AMaskOfAnyLengthIsTaken) {
    warren_mem_criteria* criteria = nullptr;
    ASSERT_EQ(warren_mem_criteria_create(&criteria), WARREN_MEM_SUCCESS);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(3, &set);
    CPU_SET(64, &set);
    ASSERT_EQ(warren_mem_criteria_set_initiator_cpus(criteria, &set, sizeof set),
              WARREN_MEM_SUCCESS);
    char text[64];
    std::size_t length = 0;
    ASSERT_EQ(warren_mem_criteria_text(criteria, text, sizeof text, &length), WARREN_MEM_SUCCESS);
    EXPECT_STREQ(text, "from=cpus:3,64");
    EXPECT_EQ(length, std::strlen(text));
    ASSERT_EQ(warren_mem_criteria_text(criteria, text, 5, &length), WARREN_MEM_SUCCESS);
    EXPECT_STREQ(text, "from");
    EXPECT_EQ(length, 14U);
    const std::string large(4096, '\1');
    EXPECT_EQ(warren_mem_criteria_set_initiator_cpus(criteria, large.data(), large.size()),
              WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_criteria_set_initiator_cpus(criteria, large.data(), 1),
              WARREN_MEM_SUCCESS);
    warren_mem_criteria_free(criteria);
}

TEST(CriteriaApi, ACopyIsIndependent) {
    warren_mem_criteria* criteria = nullptr;
    warren_mem_criteria* copy = nullptr;
    ASSERT_EQ(warren_mem_criteria_parse("bandwidth", &criteria), WARREN_MEM_SUCCESS);
    ASSERT_EQ(warren_mem_criteria_copy(criteria, &copy), WARREN_MEM_SUCCESS);
    ASSERT_EQ(warren_mem_criteria_add_named(criteria, "latency", 0), WARREN_MEM_SUCCESS);
    EXPECT_EQ(of(criteria).text(), "bandwidth,latency~0%");
    EXPECT_EQ(of(copy).text(), "bandwidth");
    warren_mem_criteria_free(criteria);
    warren_mem_criteria_free(copy);
}

} // namespace
} // namespace warren::memory
