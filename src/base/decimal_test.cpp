#include "base/decimal.hpp"

#include <clocale>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <utility>

namespace warren {

namespace {

TEST(Decimal, ReadsWholeTextsOnly) {
    double number = -1;
    for (const auto& [text, expected] : {std::pair("0", 0.0),
                                         {"10", 10.0},
                                         {"0.5", 0.5},
                                         {".25", 0.25},
                                         {"1e3", 1000.0},
                                         {"-2.5E-1", -0.25},
                                         {"1e-400", 0.0}}) {
        EXPECT_TRUE(read_decimal(text, number)) << text;
        EXPECT_EQ(number, expected) << text;
    }
    for (const char* text : {"", " 1", "1 ", "+1", "1,5", "0x10", "inf", "nan", "-", ".", "1e",
                             "1e999", "-1e999", "1.2.3", "1-2", "ten"}) {
        number = 7;
        EXPECT_FALSE(read_decimal(text, number)) << text;
        EXPECT_EQ(number, 7) << text;
    }
}

TEST(Decimal, IgnoresTheProgramsLocale) {
    const bool has_comma = std::setlocale(LC_NUMERIC, "de_DE.UTF-8") != nullptr;
    double number = 0;
    EXPECT_TRUE(read_decimal("1.5", number));
    EXPECT_EQ(number, 1.5);
    EXPECT_EQ(decimal_text(1.5), "1.5");
    std::setlocale(LC_NUMERIC, "C");
    if (!has_comma) {
        GTEST_SKIP() << "no locale with a decimal comma here";
    }
}

TEST(Decimal, WritesTheShortestTextThatIsTheNumber) {
    EXPECT_EQ(decimal_text(5), "5");
    EXPECT_EQ(decimal_text(0.1), "0.1");
    EXPECT_EQ(decimal_text(12.5), "12.5");
    EXPECT_EQ(decimal_text(0), "0");
    EXPECT_EQ(decimal_text(10), "10");
    EXPECT_EQ(decimal_text(1e-7), "1e-07");
    std::mt19937_64 random(1); // NOLINT: repeatable
    for (int round = 0; round < 2000; ++round) {
        const double number =
            std::ldexp(static_cast<double>(random()), -static_cast<int>(random() % 90));
        double again = 0;
        EXPECT_TRUE(read_decimal(decimal_text(number), again));
        EXPECT_EQ(again, number);
    }
}

} // namespace

} // namespace warren
