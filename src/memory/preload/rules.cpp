#include "memory/preload/rules.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>

#include "memory/attributes/targets.hpp"
#include "memory/heap/heaps.hpp"
#include "memory/preload/plan.hpp"

namespace warren::memory {

namespace {

constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(blanks);
    if (begin == std::string_view::npos) {
        return {};
    }
    return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string quoted(std::string_view text) {
    constexpr std::size_t shown = 60;
    std::string made = "'";
    for (const char letter : text.substr(0, shown)) {
        made += letter >= ' ' && letter <= '~' ? letter : '?';
    }
    return made + (text.size() > shown ? "…'" : "'");
}

// "4k"; false: it is no number of bytes.
bool read_bytes(std::string_view text, std::uint64_t& bytes) {
    bytes = 0;
    std::size_t digits = 0;
    for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
        if (__builtin_mul_overflow(bytes, 10U, &bytes) ||
            __builtin_add_overflow(bytes, static_cast<unsigned>(text[digits] - '0'), &bytes)) {
            return false;
        }
    }
    const std::string_view unit = text.substr(digits);
    const unsigned shift = unit.empty()                 ? 0
                           : unit == "k" || unit == "K" ? 10
                           : unit == "M"                ? 20
                           : unit == "G"                ? 30
                                                        : 64;
    if (digits == 0 || shift == 64 || bytes > UINT64_MAX >> shift) {
        return false;
    }
    bytes <<= shift;
    return true;
}

// Reads the text behind "size". Returns the mistake, "" if there is none.
std::string read_size(std::string_view text, Rule& rule) {
    const auto takes = [&](std::string_view sign) {
        const bool begins = text.substr(0, sign.size()) == sign;
        text.remove_prefix(begins ? sign.size() : 0);
        return begins;
    };
    std::uint64_t least = 0;
    std::uint64_t most = UINT64_MAX;
    std::uint64_t value = 0;
    const std::string no_bytes =
        " is no number of bytes: digits, with k, M or G behind them if wanted";
    if (takes("=")) {
        const std::size_t dots = text.find("..");
        if (!read_bytes(text.substr(0, dots), least)) {
            return quoted(text.substr(0, dots)) + no_bytes;
        }
        most = least;
        if (dots != std::string_view::npos && !read_bytes(text.substr(dots + 2), most)) {
            return quoted(text.substr(dots + 2)) + no_bytes;
        }
    } else {
        const bool upper = text.substr(0, 1) == "<";
        if (!takes("<") && !takes(">")) {
            return "behind 'size' come <, <=, >, >= or =";
        }
        const bool inclusive = takes("=");
        if (!read_bytes(text, value)) {
            return quoted(text) + no_bytes;
        }
        if (upper) {
            if (!inclusive && value == 0) {
                return "no size is less than 0";
            }
            most = inclusive ? value : value - 1;
        } else {
            if (!inclusive && value == UINT64_MAX) {
                return "no size is as large";
            }
            least = inclusive ? value : value + 1;
        }
    }
    rule.least = std::max(rule.least, least);
    rule.most = std::min(rule.most, most);
    return rule.least > rule.most ? "no size fits" : "";
}

std::string read_condition(std::string_view word, Rule& rule) {
    if (word.substr(0, 4) == "size") {
        return read_size(word.substr(4), rule);
    }
    for (const auto& [name, pattern] : {std::pair{std::string_view("function="), &rule.function},
                                        std::pair{std::string_view("library="), &rule.library},
                                        std::pair{std::string_view("file="), &rule.file}}) {
        if (word.substr(0, name.size()) == name) {
            if (!pattern->empty()) {
                return std::string(name.substr(0, name.size() - 1)) + " is there twice";
            }
            *pattern = word.substr(name.size());
            return pattern->empty() ? "there is no pattern behind " + quoted(name) : "";
        }
    }
    return quoted(word) + " is no condition: size, function=, library=, file= or default";
}

// Returns what is wrong with the line, "" if nothing is.
std::string read_rule(std::string_view line, Rule& rule) {
    const std::size_t arrow = line.find("->");
    if (arrow == std::string_view::npos) {
        return "there is no -> between conditions and criteria";
    }
    std::string_view conditions = trimmed(line.substr(0, arrow));
    rule.criteria = trimmed(line.substr(arrow + 2));
    if (conditions.empty()) {
        return "there is no condition; 'default' fits everything";
    }
    if (rule.criteria.empty()) {
        return "there are no criteria; 'system' is the system's malloc";
    }
    if (conditions != "default") {
        while (!conditions.empty()) {
            const std::string_view word = conditions.substr(0, conditions.find_first_of(blanks));
            if (std::string wrong = read_condition(word, rule); !wrong.empty()) {
                return wrong;
            }
            conditions = trimmed(conditions.substr(word.size()));
        }
    }
    if (rule.criteria != "system") {
        Criteria criteria;
        if (Error error = parse_criteria(rule.criteria, criteria)) {
            return std::unique_ptr<ErrorRecord>(error.take())->text;
        }
    }
    return "";
}

bool fits_everything(const Rule& rule) {
    return rule.least == 0 && rule.most == UINT64_MAX && rule.function.empty() &&
           rule.library.empty() && rule.file.empty();
}

Error wrong_rule(const std::string& name, unsigned line, const std::string& what) {
    return line != 0 ? fail(WARREN_MEM_ERR_FILE, "%s:%u: %s", name.c_str(), line, what.c_str())
                     : fail(WARREN_MEM_ERR_ARG, "--memory: %s", what.c_str());
}

// Kinds and criteria of a plan, each once.
class Planner {
  public:
    explicit Planner(const Machine& machine) : machine_(machine) {}

    // "system", or the number of the criteria in the plan.
    Error add(const std::string& text, std::string& number) {
        if (text == "system") {
            number = text;
            return {};
        }
        const auto known = numbers_.find(text);
        if (known != numbers_.end()) {
            number = known->second;
            return {};
        }
        if (numbers_.size() == criteria_limit) {
            return fail(WARREN_MEM_ERR_ARG, "there are more than %u different criteria",
                        criteria_limit);
        }
        Criteria criteria;
        if (Error error = parse_criteria(text, criteria)) {
            return error;
        }
        std::string line = "criteria";
        if (criteria.initiator.kind == Initiator::Kind::here) {
            if (Error error = add_places(criteria, line)) {
                return error;
            }
        } else {
            std::size_t kind = 0;
            if (Error error = add_kind(criteria, kind)) {
                return error;
            }
            line += " " + std::to_string(kind);
        }
        number = std::to_string(numbers_.size());
        numbers_.emplace(text, number);
        criteria_ += line + "\n";
        return {};
    }

    std::size_t kind_count() const { return kinds_.size(); }

    std::string text() const {
        std::string text;
        for (std::size_t number = 0; number < kinds_.size(); ++number) {
            const Kind& kind = kinds_[number];
            text += "kind " + std::to_string(number) + " " +
                    std::to_string(static_cast<int>(kind.policy)) + " " +
                    std::to_string(kind.reserved_shift != 0 ? int{kind.reserved_shift}
                                                            : static_cast<int>(kind.page_size)) +
                    " " + std::to_string(kind.equals);
            for (std::size_t target = 0; target < kind.count; ++target) {
                text += " " + std::to_string(kind.targets[target]);
            }
            text += "\n";
        }
        return text + criteria_;
    }

  private:
    // From each of the places that see memory differently.
    Error add_places(const Criteria& here, std::string& line) {
        const warren_topology* topology = machine_.topology();
        std::vector<std::pair<std::string, std::size_t>> places; // "0-7", kind
        bool differ = false;
        for (std::uint32_t row = 0; row < warren_topology_initiators(topology); ++row) {
            warren_set cpus{};
            warren_object device = WARREN_NO_OBJECT;
            if (warren_topology_initiator(topology, row, &cpus, &device) !=
                    WARREN_TOPOLOGY_SUCCESS ||
                device != WARREN_NO_OBJECT || warren_set_count(cpus) == 0) {
                continue;
            }
            std::vector<std::uint64_t> words(std::size_t{cpus.first} + cpus.count);
            std::copy_n(cpus.words, cpus.count, words.begin() + cpus.first);
            Criteria criteria = here;
            if (Error error = criteria.set_processors(words)) {
                return error;
            }
            std::size_t kind = 0;
            if (Error error = add_kind(criteria, kind)) {
                return error;
            }
            for (std::uint32_t cpu = warren_set_next(cpus, 0); cpu < processor_limit;) {
                std::uint32_t last = cpu;
                std::uint32_t next = warren_set_next(cpus, cpu + 1);
                while (next == last + 1 && next < processor_limit) {
                    last = next;
                    next = warren_set_next(cpus, next + 1);
                }
                places.emplace_back(std::to_string(cpu) + "-" + std::to_string(last), kind);
                cpu = next;
            }
            differ = differ || kind != places.front().second;
        }
        if (places.empty()) {
            return fail(WARREN_MEM_ERR_MACHINE, "the topology has no processors");
        }
        if (!differ) {
            line += " " + std::to_string(places.front().second);
            return {};
        }
        for (const auto& [processors, kind] : places) {
            line += " " + processors + ":" + std::to_string(kind);
        }
        return {};
    }

    Error add_kind(const Criteria& criteria, std::size_t& number) {
        Kind kind;
        if (Error error = kind_of(machine_, criteria, kind)) {
            return error;
        }
        if (Error error = check_reserve(criteria)) {
            return error;
        }
        const auto known = std::find(kinds_.begin(), kinds_.end(), kind);
        number = static_cast<std::size_t>(known - kinds_.begin());
        if (known != kinds_.end()) {
            return {};
        }
        if (kinds_.size() == kind_limit) {
            return fail(WARREN_MEM_ERR_ARG, "the criteria come to more than %u orderings",
                        kind_limit);
        }
        if (heap_of_kind(kind) == nullptr) {
            return errno == EINVAL
                       ? fail(WARREN_MEM_ERR_NO_TARGET,
                              "the process may use none of the targets of '%s' (cpuset of its "
                              "cgroup)",
                              criteria.text().c_str())
                       : fail(WARREN_MEM_ERR_SYSTEM, "no memory for the description of a heap");
        }
        kinds_.push_back(kind);
        return {};
    }

    const Machine& machine_;
    std::vector<Kind> kinds_;
    std::map<std::string, std::string> numbers_; // by the criteria's text
    std::string criteria_;
};

} // namespace

Error parse_rules(std::string_view text, const std::string& name, std::vector<Rule>& rules) {
    rules.clear();
    unsigned number = 0;
    while (!text.empty()) {
        ++number;
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        line = trimmed(line.substr(0, line.find('#')));
        if (line.empty()) {
            continue;
        }
        if (std::any_of(line.begin(), line.end(), [](char letter) {
                return (static_cast<unsigned char>(letter) < ' ' && letter != '\t') ||
                       letter == 127;
            })) {
            return wrong_rule(name, number, "this is no text");
        }
        if (rules.size() == rule_limit - 1) { // one is --memory's
            return wrong_rule(name, number,
                              "there are more than " + std::to_string(rule_limit - 1) + " rules");
        }
        if (!rules.empty() && fits_everything(rules.back())) {
            return wrong_rule(name, number,
                              "nothing comes here: the rule of line " +
                                  std::to_string(rules.back().line) + " fits everything");
        }
        Rule& rule = rules.emplace_back();
        rule.line = number;
        if (const std::string wrong = read_rule(line, rule); !wrong.empty()) {
            return wrong_rule(name, number, wrong);
        }
    }
    return {};
}

Error make_plan(const Machine& machine, const std::vector<Rule>& rules, const std::string& name,
                const PlanOptions& options, std::string& plan) {
    if (!machine.is_this_node()) {
        return fail(WARREN_MEM_ERR_MACHINE,
                    "the topology describes another machine than this one, whose memory can't be "
                    "had");
    }
    Planner planner(machine);
    std::string lines;
    for (const Rule& rule : rules) {
        std::string criteria;
        if (Error error = planner.add(rule.criteria, criteria)) {
            const std::string why = std::unique_ptr<ErrorRecord>(error.take())->text;
            return wrong_rule(name, rule.line, why);
        }
        lines += "rule " + std::to_string(rule.line) + " " + std::to_string(rule.least) + " " +
                 std::to_string(rule.most) + " " + criteria;
        for (const auto& [condition, pattern] :
             {std::pair{" function=", &rule.function}, std::pair{" library=", &rule.library},
              std::pair{" file=", &rule.file}}) {
            lines += pattern->empty() ? "" : condition + *pattern;
        }
        lines += "\n";
    }
    plan = "warren-memory-1 " + std::to_string(planner.kind_count()) +
           (options.children ? " children" : "") + (options.report ? " report" : "") + "\n" +
           planner.text() + lines;
    // The kernel's limit for one string of the environment.
    constexpr std::size_t most_bytes = 128 * 1024 - 64;
    if (plan.size() > most_bytes) {
        return fail(WARREN_MEM_ERR_ARG,
                    "the rules come to a plan of %zu bytes for this machine; %zu are possible: "
                    "fewer rules, or from= in their criteria, make it shorter",
                    plan.size(), most_bytes);
    }
    return {};
}

} // namespace warren::memory
