#include "topology/values_file.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace warren::topology {
namespace {

std::string sentence(Error error) {
    ErrorRecord* record = error.take();
    std::string text = record != nullptr ? record->text : "";
    delete record;
    return text;
}

ValuesFile example() {
    ValuesFile file;
    file.machine.model = "Some Processor 9000 @ 2.1 GHz";
    file.machine.memories = {{0, {0xf}, 17179869184}, {3, {}, 1073741824}};
    file.remarks = {"measured by hand", "twice"};
    file.values = {{WARREN_ATTRIBUTE_LATENCY, {0xf}, 0, 90},
                   {WARREN_ATTRIBUTE_LATENCY, {0xf}, 3, 350},
                   {WARREN_ATTRIBUTE_READ_BANDWIDTH, {0x3}, 3, 12000}};
    return file;
}

// The text with a correct end, whatever the lines are.
std::string sealed(const std::string& lines) {
    ValuesFile nothing;
    nothing.machine.model = "x";
    std::uint64_t sum = 0xcbf29ce484222325;
    std::size_t values = 0;
    for (const char character : lines) {
        sum = (sum ^ static_cast<unsigned char>(character)) * 0x100000001b3;
    }
    for (std::size_t at = lines.find("value "); at != std::string::npos;
         at = lines.find("value ", at + 1)) {
        ++values;
    }
    char end[64];
    std::snprintf(end, sizeof end, "end %zu %016llx\n", values,
                  static_cast<unsigned long long>(sum));
    return lines + end;
}

TEST(ValuesFile, IsReadAsItWasWritten) {
    const ValuesFile file = example();
    ValuesFile read;
    ASSERT_EQ(sentence(parse_values(text_of(file), read)), "");
    EXPECT_EQ(text_of(read), text_of(file));
    EXPECT_EQ(difference(read.machine, file.machine), "");
    ASSERT_EQ(read.values.size(), 3U);
    EXPECT_EQ(read.values[2].attribute, std::uint32_t{WARREN_ATTRIBUTE_READ_BANDWIDTH});
    EXPECT_EQ(read.values[2].value, 12000U);
}

TEST(ValuesFile, WhatCantBeIsRefusedWithTheLine) {
    const std::string head = "warren memory values 1\nmachine M\nnode 0 cpus 0-3 bytes 1000\n";
    const std::pair<std::string, const char*> mistakes[] = {
        {"warren memory values 2\nmachine M\n", "line 1"},
        {"", "line 1"},
        {"warren memory values 1\nnode 0 cpus 0 bytes 1\n", "line 2: no line 'machine"},
        {head + "node 0 cpus 0 bytes 1\n", "line 4"},
        {head + "node 1024 cpus 0 bytes 1\n", "line 4"},
        {head + "node 1 cpus 3-1 bytes 1\n", "line 4"},
        {head + "node 1 cpus 0-9999 bytes 1\n", "line 4"},
        {head + "value latency from 0 to 0 is 0\n", "line 4: no memory has such a latency"},
        {head + "value latency from 0 to 0 is 1000000001\n", "no memory has such a latency"},
        {head + "value bandwidth from 0 to 0 is 1073741825\n", "no memory has such a bandwidth"},
        {head + "value latency from 0 to 0 is -5\n", "not as in"},
        {head + "value latency from 0 to 0 is 1e3\n", "not as in"},
        {head + "value latency from none to 0 is 5\n", "not as in"},
        {head + "value latency from 0 to 1 is 5\n", "has no line 'node'"},
        {head + "value capacity from 0 to 0 is 5\n", "not a bandwidth or latency"},
        {head + "value latency from 0 to 0 is 5\nvalue latency from 0 to 0 is 6\n",
         "line 5: the same for the second time"},
        {head + "latency 5\n", "neither node"},
    };
    for (const auto& [lines, part] : mistakes) {
        ValuesFile file = example();
        const std::string said = sentence(parse_values(sealed(lines), file));
        EXPECT_NE(said.find(part), std::string::npos) << lines << said;
        EXPECT_EQ(file.values.size(), 3U) << "changed by what was refused";
    }
    ValuesFile file;
    EXPECT_EQ(sentence(parse_values(sealed(head), file)), "");
    EXPECT_NE(sentence(parse_values(head, file)).find("cut off"), std::string::npos);
    EXPECT_NE(sentence(parse_values(sealed(head) + "more\n", file)).find("follows"),
              std::string::npos);
}

TEST(ValuesFile, AnyDamageIsNoticed) {
    const std::string text = text_of(example());
    ValuesFile file;
    for (std::size_t length = 0; length + 1 < text.size(); ++length) {
        EXPECT_NE(sentence(parse_values(text.substr(0, length), file)), "") << length;
    }
    for (std::size_t at = 0; at < text.size(); ++at) {
        for (int bit = 0; bit < 8; ++bit) {
            std::string damaged = text;
            damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
            EXPECT_NE(sentence(parse_values(damaged, file)), "") << at << " " << bit;
        }
    }
}

// Lines made of right and wrong parts, with a right checksum, are understood or refused; what is
// understood is written as it is read. WARREN_FUZZ_SECONDS lets it run for longer.
TEST(ValuesFile, RandomLinesAreRefusedOrUnderstood) {
    const char* seconds = std::getenv("WARREN_FUZZ_SECONDS");
    const std::time_t end = std::time(nullptr) + (seconds != nullptr ? std::atoi(seconds) : 0);
    std::mt19937 random(seconds != nullptr ? static_cast<unsigned>(end) : 5);
    const char* const parts[] = {
        "node ",      "value ", "cpus ", "from ", "to ",    "is ",        "bytes ", "latency ",
        "bandwidth ", "0",      "1",     "0-3",   "none",   "4294967296", "8191",   " ",
        "\n",         "-",      ",",     "# ",    "end 0 ", "\xff",       "99999",  "machine M"};
    const std::string starts[] = {"warren memory values 1\nmachine M\n",
                                  "warren memory values 1\nmachine M\nnode 0 cpus 0-3 bytes 1000\n",
                                  "warren memory values 1\nmachine M\nnode 0 cpus none bytes 9\n"
                                  "value latency from 0-3 to 0 is 9\n"};
    std::size_t understood = 0;
    std::size_t round = 0;
    for (; round < 20000 || std::time(nullptr) < end; ++round) {
        std::string lines = starts[random() % 3];
        if (random() % 3 == 0) {
            lines += "value latency from " + std::to_string(random() % 9) + " to 0 is " +
                     std::to_string(random() % 5) + "\n";
        } else {
            for (std::size_t part = random() % 12; part > 0; --part) {
                lines += parts[random() % std::size(parts)];
            }
        }
        const std::string text = sealed(lines);
        ValuesFile file;
        if (Error error = parse_values(text, file)) {
            EXPECT_NE(sentence(error), "");
            continue;
        }
        ++understood;
        ValuesFile again;
        ASSERT_EQ(sentence(parse_values(text_of(file), again)), "") << text;
    }
    EXPECT_GT(understood, 100U);
    std::printf("%zu files, %zu of them understood\n", round, understood);
}

TEST(ValuesFile, OtherMachinesAreTold) {
    const MachineIdentity here = example().machine;
    MachineIdentity other = here;
    EXPECT_EQ(difference(other, here), "");
    other.memories[0].bytes -= other.memories[0].bytes / 20;
    EXPECT_EQ(difference(other, here), "") << "a kernel keeps some";
    other.memories[0].bytes /= 2;
    EXPECT_NE(difference(other, here).find("bytes"), std::string::npos);
    other = here;
    other.model = "Other";
    EXPECT_NE(difference(other, here).find("'Other'"), std::string::npos);
    EXPECT_NE(key_of(other), key_of(here));
    other = here;
    other.memories[0].cpus = {0x7};
    EXPECT_NE(difference(other, here).find("processors 0-2, here to 0-3"), std::string::npos);
    other = here;
    other.memories.pop_back();
    EXPECT_NE(difference(other, here).find("has 1 memories"), std::string::npos);
    other = here;
    other.memories[1].node = 1;
    EXPECT_NE(difference(other, here).find("memory 1 is not here"), std::string::npos);
}

TEST(ValuesFile, IsLookedForByTheMachinesKey) {
    char folder[] = "/tmp/mpi-test-values.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    const std::string root = folder;
    ASSERT_EQ(setenv("XDG_CONFIG_HOME", folder, 1), 0);
    ASSERT_EQ(unsetenv("WARREN_MEMORY_VALUES"), 0);
    const MachineIdentity machine = example().machine;
    EXPECT_EQ(find_values(machine), "");
    mkdir((root + "/warren").c_str(), 0700);
    mkdir((root + "/warren/memory").c_str(), 0700);
    const std::string path = place_of_values(machine);
    EXPECT_EQ(path, root + "/warren/memory/" + key_of(machine) + ".values");
    std::ofstream(path) << text_of(example());
    EXPECT_EQ(find_values(machine), path);
    ValuesFile file;
    EXPECT_EQ(sentence(read_values(path, file)), "");
    EXPECT_EQ(file.values.size(), 3U);
    ASSERT_EQ(setenv("WARREN_MEMORY_VALUES", "/some/file", 1), 0);
    EXPECT_EQ(find_values(machine), "/some/file");
    ASSERT_EQ(setenv("WARREN_MEMORY_VALUES", "none", 1), 0);
    EXPECT_EQ(find_values(machine), "");
    EXPECT_NE(sentence(read_values(root, file)).find("no file"), std::string::npos);
    EXPECT_NE(sentence(read_values(root + "/missing", file)).find("missing"), std::string::npos);
    if (geteuid() == 0) {
        ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
        EXPECT_NE(sentence(read_values(path, file)).find("user 12345"), std::string::npos);
    }
    unlink(path.c_str());
    rmdir((root + "/warren/memory").c_str());
    rmdir((root + "/warren").c_str());
    rmdir(folder);
}

} // namespace
} // namespace warren::topology
