#include "memory/preload/plan.hpp"

#include <cstdlib>
#include <cstring>

#include "memory/heap/numa.hpp"
#include "memory/heap/region.hpp"

namespace warren::memory {

namespace {

// Words of a line, apart by single blanks.
class Line {
  public:
    explicit Line(char* text) : at_(text) {}

    char* word() {
        if (at_ == nullptr || *at_ == '\0') {
            return nullptr;
        }
        char* begin = at_;
        at_ = std::strchr(at_, ' ');
        if (at_ != nullptr) {
            *at_++ = '\0';
        }
        return begin;
    }

    bool number(std::uint64_t most, std::uint64_t& value) { return number_in(word(), most, value); }

    static bool number_in(const char* text, std::uint64_t most, std::uint64_t& value) {
        if (text == nullptr || *text < '0' || *text > '9') {
            return false;
        }
        char* end = nullptr;
        value = std::strtoull(text, &end, 10);
        return *end == '\0' && value <= most;
    }

  private:
    char* at_;
};

bool read_kind(Line& line, Kind& kind) {
    std::uint64_t policy = 0;
    std::uint64_t page_size = 0;
    std::uint64_t equals = 0;
    if (!line.number(2, policy) || !line.number(largest_page_shift, page_size) ||
        !line.number(target_limit, equals)) {
        return false;
    }
    kind = {};
    kind.policy = static_cast<Policy>(policy);
    if (page_size <= static_cast<std::uint64_t>(PageSize::huge)) {
        kind.page_size = static_cast<PageSize>(page_size);
    } else if (page_size > smallest_page_shift) {
        kind.reserved_shift = static_cast<std::uint8_t>(page_size);
    } else {
        return false;
    }
    kind.equals = static_cast<std::uint16_t>(equals);
    std::uint64_t node = 0;
    while (const char* word = line.word()) {
        if (kind.count == target_limit || !Line::number_in(word, node_limit - 1, node)) {
            return false;
        }
        kind.targets[kind.count++] = static_cast<std::int16_t>(node);
    }
    return kind.equals >= 1 && kind.equals <= kind.count;
}

// "3" or "0-7:3 8-15:4".
bool read_criteria(Line& line, unsigned kinds, PlanCriteria& criteria) {
    bool first_word = true;
    while (char* word = line.word()) {
        char* colon = std::strchr(word, ':');
        std::uint64_t kind = 0;
        if (colon == nullptr) {
            if (!first_word || !Line::number_in(word, kinds - 1, kind)) {
                return false;
            }
            criteria.kind = static_cast<std::uint16_t>(kind);
        } else {
            *colon = '\0';
            char* dash = std::strchr(word, '-');
            if (dash == nullptr) {
                return false;
            }
            *dash = '\0';
            std::uint64_t first = 0;
            std::uint64_t last = 0;
            if (!Line::number_in(word, processor_limit - 1, first) ||
                !Line::number_in(dash + 1, processor_limit - 1, last) || first > last ||
                !Line::number_in(colon + 1, kinds - 1, kind)) {
                return false;
            }
            if (first_word) { // zero: processors that nobody names are as processor 0's kind
                criteria.by_processor = true;
                criteria.kind_on = static_cast<std::uint16_t*>(
                    take_metadata(processor_limit * sizeof(std::uint16_t)));
                criteria.kind = static_cast<std::uint16_t>(kind);
                for (unsigned i = 0; criteria.kind_on != nullptr && i < processor_limit; ++i) {
                    criteria.kind_on[i] = criteria.kind;
                }
            }
            if (criteria.kind_on == nullptr) {
                return false;
            }
            for (std::uint64_t i = first; i <= last; ++i) {
                criteria.kind_on[i] = static_cast<std::uint16_t>(kind);
            }
        }
        first_word = false;
    }
    return !first_word;
}

bool read_rule(Line& line, unsigned criteria, PlanRule& rule) {
    std::uint64_t number = 0;
    std::uint64_t chosen = 0;
    if (!line.number(UINT32_MAX, number) || !line.number(UINT64_MAX, rule.least) ||
        !line.number(UINT64_MAX, rule.most)) {
        return false;
    }
    rule.line = static_cast<std::uint32_t>(number);
    const char* word = line.word();
    if (word != nullptr && std::strcmp(word, "system") == 0) {
        rule.criteria = systems;
    } else if (criteria != 0 && Line::number_in(word, criteria - 1, chosen)) {
        rule.criteria = static_cast<std::uint16_t>(chosen);
    } else {
        return false;
    }
    while (char* condition = line.word()) {
        const char** pattern = std::strncmp(condition, "function=", 9) == 0  ? &rule.site.function
                               : std::strncmp(condition, "library=", 8) == 0 ? &rule.site.library
                               : std::strncmp(condition, "file=", 5) == 0    ? &rule.site.file
                                                                             : nullptr;
        if (pattern == nullptr) {
            return false;
        }
        *pattern = std::strchr(condition, '=') + 1;
    }
    return true;
}

} // namespace

bool Plan::read(char* text) {
    *this = {};
    bool begun = false;
    while (text != nullptr && *text != '\0') {
        char* next = std::strchr(text, '\n');
        if (next != nullptr) {
            *next++ = '\0';
        }
        Line line(text);
        const char* what = line.word();
        std::uint64_t number = 0;
        if (what == nullptr) {
            return false;
        }
        if (!begun) {
            if (std::strcmp(what, "warren-memory-1") != 0 || !line.number(kind_limit, number)) {
                return false;
            }
            kinds = static_cast<Kind*>(take_metadata((number + 1) * sizeof(Kind)));
            if (kinds == nullptr) {
                return false;
            }
            kind_count = static_cast<unsigned>(number);
            while (const char* option = line.word()) {
                children = children || std::strcmp(option, "children") == 0;
                report = report || std::strcmp(option, "report") == 0;
            }
            number = 0;
            begun = true;
        } else if (std::strcmp(what, "kind") == 0) {
            if (!line.number(kind_count - 1U, number) || kind_count == 0 ||
                !read_kind(line, kinds[number])) {
                return false;
            }
        } else if (std::strcmp(what, "criteria") == 0) {
            if (criteria_count == criteria_limit || kind_count == 0 ||
                !read_criteria(line, kind_count, criteria[criteria_count])) {
                return false;
            }
            ++criteria_count;
        } else if (std::strcmp(what, "rule") == 0) {
            if (rule_count == rule_limit || !read_rule(line, criteria_count, rules[rule_count])) {
                return false;
            }
            by_site = by_site || !rules[rule_count].site.any();
            ++rule_count;
        } else {
            return false;
        }
        text = next;
    }
    for (unsigned kind = 0; kind < kind_count; ++kind) {
        if (kinds[kind].count == 0) {
            return false;
        }
    }
    return begun;
}

bool matches(const char* pattern, const char* name) {
    // After a * that turned out too short, one letter more of the name is its.
    const char* star = nullptr;
    const char* behind = nullptr;
    while (*name != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            behind = name;
        } else if (*pattern == '?' || *pattern == *name) {
            ++pattern;
            ++name;
        } else if (star != nullptr) {
            pattern = star;
            name = ++behind;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        ++pattern;
    }
    return *pattern == '\0';
}

} // namespace warren::memory
