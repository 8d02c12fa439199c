#include "memory/attributes/criteria.hpp"

#include <atomic>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/decimal.hpp"
#include "base/page.hpp"
#include "memory/attributes/attribute.hpp"
#include "memory/heap/kind.hpp"

namespace warren::memory {

namespace {

struct Word {
    std::string_view name;
    unsigned value;
};

constexpr Word policies[] = {{"next", WARREN_MEM_NEXT},
                             {"strict", WARREN_MEM_STRICT},
                             {"interleave", WARREN_MEM_INTERLEAVE}};
constexpr Word target_kinds[] = {{"local", WARREN_MEM_LOCAL},
                                 {"remote", WARREN_MEM_REMOTE},
                                 {"cpuless", WARREN_MEM_CPULESS},
                                 {"device", WARREN_MEM_DEVICE}};

constexpr std::string_view reserve_prefix = "hugetlb:";

// Texts are short; a longer one is a mistake, and would make a sentence nobody reads.
constexpr std::size_t max_text = 4096;

int length_of(std::string_view text) {
    return static_cast<int>(std::min<std::size_t>(text.size(), 80));
}

// Returns the text before the first of `separators`, and removes both from `rest`.
std::string_view next_part(std::string_view& rest, std::string_view separators) {
    const std::size_t end = rest.find_first_of(separators);
    const std::string_view part = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    return part;
}

bool read_number(std::string_view text, double& number) {
    return read_decimal(text, number);
}

template <typename Number>
bool read_number(std::string_view text, Number& number) {
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    return !text.empty() && result.ec == std::errc() && result.ptr == text.data() + text.size();
}

Error parse_term(std::string_view text, Term& term) {
    std::string_view rest = text;
    const std::string_view name = next_part(rest, "~");
    if (!is_attribute_name(name)) {
        return fail(WARREN_MEM_ERR_ARG, "criteria: '%.*s' is no name of an attribute",
                    length_of(name), name.data());
    }
    term = {};
    term.attribute = predefined_attribute_by_name(name);
    if (term.attribute < 0) {
        term.name = name;
    }
    if (text.find('~') == std::string_view::npos) {
        return {};
    }
    const bool percent = rest.ends_with('%');
    double value = 0;
    if (!percent || !read_number(rest.substr(0, rest.size() - 1), value) || !(value >= 0) ||
        value > max_tolerance * 100) {
        return fail(WARREN_MEM_ERR_ARG,
                    "criteria: '%.*s': a tolerance is a percentage, as in latency~10%%, of 0 to "
                    "%.0f",
                    length_of(text), text.data(), max_tolerance * 100);
    }
    term.tolerance = value / 100;
    return {};
}

Error parse_page_bytes(std::string_view text, std::size_t& bytes, bool& reserved) {
    const std::string_view whole = text;
    bytes = 0;
    reserved = text.starts_with(reserve_prefix);
    if (reserved) {
        text.remove_prefix(reserve_prefix.size());
    } else if (text == "default") {
        return {};
    }
    unsigned shift = 0;
    if (!text.empty()) {
        const std::size_t unit = std::string_view("kMG").find(text.back());
        if (unit != std::string_view::npos) {
            shift = 10 * static_cast<unsigned>(unit + 1);
            text.remove_suffix(1);
        }
    }
    std::uint64_t value = 0;
    if (!read_number(text, value) || value == 0 || value > (std::uint64_t{1} << 40 >> shift)) {
        return fail(WARREN_MEM_ERR_ARG,
                    "criteria: page=%.*s: neither 'default' nor a size such as 4k, 2M or, from the "
                    "system's reserve, hugetlb:2M",
                    length_of(whole), whole.data());
    }
    bytes = value << shift;
    return {};
}

Error parse_targets(std::string_view text, unsigned& targets) {
    targets = 0;
    if (text == "all") {
        targets = WARREN_MEM_EVERYWHERE;
        return {};
    }
    for (bool more = true; more;) {
        more = text.find('+') != std::string_view::npos;
        const std::string_view name = next_part(text, "+");
        unsigned value = 0;
        for (const Word& kind : target_kinds) {
            value = kind.name == name ? kind.value : value;
        }
        if (value == 0) {
            return fail(WARREN_MEM_ERR_ARG,
                        "criteria: targets: '%.*s' is not one of local, remote, cpuless, device "
                        "(joined by +) or all",
                        length_of(name), name.data());
        }
        targets |= value;
    }
    return {};
}

Error parse_setting(std::string_view text, Criteria& criteria) {
    std::string_view value = text;
    const std::string_view name = next_part(value, "=");
    if (name == "from") {
        return criteria.set_initiator(value);
    }
    if (name == "full") {
        for (const Word& policy : policies) {
            if (policy.name == value) {
                return criteria.set_policy(static_cast<int>(policy.value));
            }
        }
        return fail(WARREN_MEM_ERR_ARG, "criteria: full=%.*s: not one of next, strict, interleave",
                    length_of(value), value.data());
    }
    if (name == "page") {
        std::size_t bytes = 0;
        bool reserved = false;
        if (Error error = parse_page_bytes(value, bytes, reserved)) {
            return error;
        }
        return criteria.set_page_bytes(bytes, reserved);
    }
    if (name == "targets") {
        unsigned targets = 0;
        if (Error error = parse_targets(value, targets)) {
            return error;
        }
        return criteria.set_targets(targets);
    }
    return fail(WARREN_MEM_ERR_ARG,
                "criteria: '%.*s' is not one of the settings from=, full=, page=, targets=",
                length_of(text), text.data());
}

} // namespace

Error parse_processors(std::string_view text, std::vector<std::uint64_t>& bitmap) {
    bitmap.clear();
    const std::string_view whole = text;
    for (bool more = true; more;) {
        more = text.find(',') != std::string_view::npos;
        std::string_view last_text = next_part(text, ",");
        const bool range = last_text.find('-') != std::string_view::npos;
        const std::string_view first_text = next_part(last_text, "-");
        std::size_t first = 0;
        std::size_t last = 0;
        if (!read_number(first_text, first) || (range && !read_number(last_text, last)) ||
            first >= max_processors || last >= max_processors || (range && last < first)) {
            return fail(WARREN_MEM_ERR_ARG,
                        "'%.*s' is no list of processors such as 0-3,8 (numbers below %zu)",
                        length_of(whole), whole.data(), max_processors);
        }
        for (std::size_t cpu = first; cpu <= (range ? last : first); ++cpu) {
            if (bitmap.size() <= cpu / 64) {
                bitmap.resize(cpu / 64 + 1);
            }
            bitmap[cpu / 64] |= std::uint64_t{1} << (cpu % 64);
        }
    }
    return {};
}

std::string text_of_processors(const std::vector<std::uint64_t>& bitmap) {
    const auto has = [&](std::size_t cpu) {
        return cpu / 64 < bitmap.size() && (bitmap[cpu / 64] >> (cpu % 64) & 1) != 0;
    };
    std::string text;
    for (std::size_t cpu = 0; cpu < bitmap.size() * 64; ++cpu) {
        if (!has(cpu)) {
            continue;
        }
        const std::size_t first = cpu;
        while (has(cpu + 1)) {
            ++cpu;
        }
        text += (text.empty() ? "" : ",") + std::to_string(first);
        if (cpu > first) {
            text += "-" + std::to_string(cpu);
        }
    }
    return text;
}

Error parse_initiator(std::string_view text, Initiator& initiator) {
    Initiator made;
    if (text == "here") {
        initiator = made;
        return {};
    }
    std::string_view rest = text;
    const std::string_view type = next_part(rest, ":");
    if (type == "cpus") {
        made.kind = Initiator::Kind::processors;
        if (Error error = parse_processors(rest, made.processors)) {
            return error;
        }
    } else {
        made.kind = Initiator::Kind::object;
        made.type = type;
        if (!is_attribute_name(type) || !read_number(rest, made.index)) {
            return fail(WARREN_MEM_ERR_ARG,
                        "'%.*s' is no initiator: 'here', a list of processors as in cpus:0-3,8, or "
                        "an object as in core:3",
                        length_of(text), text.data());
        }
    }
    initiator = std::move(made);
    return {};
}

std::string text_of(const Initiator& initiator) {
    switch (initiator.kind) {
    case Initiator::Kind::processors:
        return "cpus:" + text_of_processors(initiator.processors);
    case Initiator::Kind::object:
        return initiator.type + ":" + std::to_string(initiator.index);
    default:
        return "here";
    }
}

void Criteria::changed() {
    static std::atomic<std::uint64_t> last{0};
    // Only different numbers are wanted, in no order.
    revision = last.fetch_add(1, std::memory_order_relaxed) + 1;
}

Error Criteria::add(int attribute, double tolerance) {
    if (predefined_attribute(attribute) == nullptr) {
        return fail(WARREN_MEM_ERR_ATTRIBUTE,
                    "criteria: there is no predefined attribute %d; registered ones are added by "
                    "name",
                    attribute);
    }
    return add({attribute, "", tolerance < 0 ? -1 : tolerance});
}

Error Criteria::add(std::string_view name, double tolerance) {
    if (!is_attribute_name(name)) {
        return fail(WARREN_MEM_ERR_ARG, "criteria: '%.*s' is no name of an attribute",
                    length_of(name), name.data());
    }
    const int attribute = predefined_attribute_by_name(name);
    return add({attribute, attribute < 0 ? std::string(name) : "", tolerance < 0 ? -1 : tolerance});
}

Error Criteria::add(Term term) {
    const double tolerance = term.tolerance;
    if (std::isnan(tolerance) || tolerance > max_tolerance) {
        return fail(WARREN_MEM_ERR_ARG, "criteria: a tolerance of %g is not in 0 … %g", tolerance,
                    max_tolerance);
    }
    if (terms.size() == max_terms) {
        return fail(WARREN_MEM_ERR_ARG, "criteria: more than %zu attributes", max_terms);
    }
    terms.push_back(std::move(term));
    changed();
    return {};
}

Error Criteria::set_initiator(std::string_view text) {
    if (Error error = parse_initiator(text, initiator)) {
        return error;
    }
    changed();
    return {};
}

Error Criteria::set_processors(std::vector<std::uint64_t> bitmap) {
    while (!bitmap.empty() && bitmap.back() == 0) {
        bitmap.pop_back();
    }
    if (bitmap.empty() || bitmap.size() > max_processors / 64) {
        return fail(WARREN_MEM_ERR_ARG, "criteria: an initiator of %s",
                    bitmap.empty() ? "no processor" : "processors that Linux can't have");
    }
    initiator = {};
    initiator.kind = Initiator::Kind::processors;
    initiator.processors = std::move(bitmap);
    changed();
    return {};
}

Error Criteria::set_policy(int value) {
    if (value < WARREN_MEM_NEXT || value > WARREN_MEM_INTERLEAVE) {
        return fail(WARREN_MEM_ERR_ARG, "criteria: there is no policy %d", value);
    }
    policy = value;
    changed();
    return {};
}

Error Criteria::set_page_bytes(std::size_t bytes, bool from_reserve) {
    if (bytes != 0 && (!std::has_single_bit(bytes) || bytes < warren::page_bytes)) {
        return fail(WARREN_MEM_ERR_ARG, "criteria: pages of %zu bytes: a power of two from 4096 on",
                    bytes);
    }
    if (from_reserve && (bytes <= warren::page_bytes || bytes >> largest_page_shift > 1)) {
        return fail(WARREN_MEM_ERR_ARG,
                    "criteria: pages of %zu bytes: the system's reserve has larger ones than 4k, "
                    "such as 2M",
                    bytes);
    }
    page_bytes = bytes;
    reserved = from_reserve;
    changed();
    return {};
}

Error Criteria::set_targets(unsigned value) {
    if (value == 0 || (value & ~unsigned{WARREN_MEM_EVERYWHERE}) != 0) {
        return fail(WARREN_MEM_ERR_ARG,
                    "criteria: targets 0x%x are not some of LOCAL, REMOTE, CPULESS, DEVICE", value);
    }
    targets = value;
    changed();
    return {};
}

std::string Criteria::text() const {
    const Criteria usual;
    std::string text;
    for (const Term& term : terms) {
        text += text.empty() ? "" : ",";
        const Attribute* attribute = predefined_attribute(term.attribute);
        text += attribute != nullptr ? attribute->name : term.name;
        if (term.tolerance >= 0) {
            text += "~" + decimal_text(term.tolerance * 100) + "%";
        }
    }
    const auto set = [&](const char* name, const std::string& value) {
        text += (text.empty() ? "" : " ") + std::string(name) + "=" + value;
    };
    if (initiator != usual.initiator) {
        set("from", text_of(initiator));
    }
    if (policy != usual.policy) {
        set("full", std::string(policies[policy].name));
    }
    if (page_bytes != 0) {
        const bool mega = page_bytes % (1U << 20) == 0;
        set("page", std::string(reserved ? reserve_prefix : "") +
                        std::to_string(mega ? page_bytes >> 20 : page_bytes >> 10) +
                        (mega ? "M" : "k"));
    }
    if (targets != usual.targets) {
        std::string kinds;
        for (const Word& kind : target_kinds) {
            if ((targets & kind.value) != 0) {
                kinds += (kinds.empty() ? "" : "+") + std::string(kind.name);
            }
        }
        set("targets", kinds);
    }
    return text;
}

Error parse_criteria(std::string_view text, Criteria& criteria) {
    if (text.size() > max_text) {
        return fail(WARREN_MEM_ERR_ARG, "criteria: a text of %zu bytes; at most %zu", text.size(),
                    max_text);
    }
    Criteria made;
    bool attributes_seen = false;
    std::vector<std::string_view> settings;
    while (!text.empty()) {
        std::string_view part = next_part(text, " \t\n;");
        if (part.empty()) {
            continue;
        }
        const std::string_view name = part.substr(0, part.find('='));
        if (name.size() < part.size()) {
            for (const std::string_view former : settings) {
                if (former == name) {
                    return fail(WARREN_MEM_ERR_ARG, "criteria: %.*s= is there twice",
                                length_of(name), name.data());
                }
            }
            settings.push_back(name);
            if (Error error = parse_setting(part, made)) {
                return error;
            }
            continue;
        }
        if (attributes_seen) {
            return fail(WARREN_MEM_ERR_ARG,
                        "criteria: '%.*s': attributes are one list, joined by commas",
                        length_of(part), part.data());
        }
        attributes_seen = true;
        for (bool more = true; more;) {
            more = part.find(',') != std::string_view::npos;
            Term term;
            if (Error error = parse_term(next_part(part, ","), term)) {
                return error;
            }
            if (made.terms.size() == max_terms) {
                return fail(WARREN_MEM_ERR_ARG, "criteria: more than %zu attributes", max_terms);
            }
            made.terms.push_back(std::move(term));
        }
    }
    made.changed();
    criteria = std::move(made);
    return {};
}

} // namespace warren::memory
