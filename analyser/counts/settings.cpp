#include "analyser/counts/settings.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace warren::locality::counts {
namespace {

bool is_plain(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || std::strchr("/._-", letter) != nullptr;
}

std::string encode(const std::string& text) {
    std::string made;
    for (const char letter : text) {
        if (letter != '\0' && is_plain(letter)) {
            made += letter;
        } else {
            char code[4];
            std::snprintf(code, sizeof code, "%%%02X", static_cast<unsigned char>(letter));
            made += code;
        }
    }
    return made;
}

std::string decode(const std::string& text) {
    std::string made;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '%' && at + 2 < text.size()) {
            made += static_cast<char>(std::strtol(text.substr(at + 1, 2).c_str(), nullptr, 16));
            at += 2;
        } else {
            made += text[at];
        }
    }
    return made;
}

struct Number {
    const char* key;
    std::uint64_t Settings::*value;
};

constexpr Number numbers[] = {
    {"granularity", &Settings::granularity},
    {"interval", &Settings::interval_ns},
    {"save", &Settings::save_ns},
    {"limit", &Settings::limit_bytes},
    {"threshold", &Settings::threshold},
    {"depth", &Settings::stack_depth},
    {"communication", &Settings::communication},
    {"faults", &Settings::faults},
};

} // namespace

std::string write_settings(const Settings& settings) {
    std::string text = "folder=" + encode(settings.folder) + " mode=" + encode(settings.mode);
    for (const Number& number : numbers) {
        text += std::string(" ") + number.key + "=" + std::to_string(settings.*number.value);
    }
    return text;
}

bool read_settings(int count, const char* const* words, Settings& settings, std::string& problem) {
    for (int index = 1; index < count; ++index) {
        const std::string word = words[index];
        const std::size_t equals = word.find('=');
        const std::string key = word.substr(0, equals);
        const std::string value =
            equals == std::string::npos ? "" : decode(word.substr(equals + 1));
        bool known = true;
        if (key == "folder") {
            settings.folder = value;
        } else if (key == "mode") {
            settings.mode = value;
        } else {
            known = false;
            for (const Number& number : numbers) {
                if (key == number.key) {
                    char* end = nullptr;
                    settings.*number.value = std::strtoull(value.c_str(), &end, 10);
                    known = !value.empty() && *end == '\0';
                }
            }
        }
        if (!known) {
            problem = "'" + word + "' is no setting";
            return false;
        }
    }
    return check(settings, problem);
}

bool check(const Settings& settings, std::string& problem) {
    const std::uint64_t unit = settings.granularity;
    if (unit < least_granularity || unit > largest_granularity || (unit & (unit - 1)) != 0) {
        problem = "the granularity is " + std::to_string(unit) +
                  ", and should be a power of two from 64 to 2 MiB";
    } else if (settings.mode != "counts" && settings.mode != "sample" && settings.mode != "hooks") {
        problem = "there is no mode '" + settings.mode + "'";
    } else if (settings.mode == "sample" && settings.communication != 0) {
        problem = "--communication needs all accesses: mode sample has those of bursts only";
    } else if (settings.threshold == 0) {
        problem = "the threshold is 0 bytes";
    } else if (settings.stack_depth == 0 || settings.stack_depth > most_calls) {
        problem = "the depth of stacks is " + std::to_string(settings.stack_depth) +
                  ", and should be from 1 to " + std::to_string(most_calls);
    } else if (settings.folder.empty()) {
        problem = "no folder for the recording is given";
    }
    return problem.empty();
}

} // namespace warren::locality::counts
