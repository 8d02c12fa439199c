// getopt and its kin, as the GNU C library has them: options may follow operands, which are moved
// behind them, unless the list of options begins with '+' or POSIXLY_CORRECT is set; '-' makes
// operands arguments of option 1; long options may be abbreviated.
#include <algorithm>
#include <cstring>
#include <getopt.h>

#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

class Parser {
  public:
    Parser(int count, char* const* arguments, const char* letters, const option* longs, int* which,
           bool long_only, bool posix = false)
        : state_(LibcState::current()),
          place_(state_.options),
          count_(count),
          arguments_(const_cast<char**>(arguments)),
          letters_(letters),
          longs_(longs),
          which_(which),
          long_only_(long_only),
          posix_(posix) {}

    int next() {
        if (count_ < 1) {
            return -1;
        }
        argument() = nullptr;
        begin();
        if (place_.next == nullptr || *place_.next == 0) {
            const int outcome = next_argument();
            if (outcome != more) {
                return outcome;
            }
        }
        return next_letter();
    }

  private:
    static constexpr int more = -2;

    int& index() { return state_.value<int>(Variable::optind); }
    char*& argument() { return state_.value<char*>(Variable::optarg); }
    int& letter() { return state_.value<int>(Variable::optopt); }
    bool loud() { return state_.value<int>(Variable::opterr) != 0 && *list() != ':'; }
    bool in_order() const { return *letters_ == '-'; }
    bool operands_end() const {
        return posix_ || *letters_ == '+' ||
               (*letters_ != '-' && libc::getenv("POSIXLY_CORRECT") != nullptr);
    }
    const char* list() const { return letters_ + (*letters_ == '-' || *letters_ == '+' ? 1 : 0); }

    template <typename... Values>
    void complain(const char* format, Values... values) {
        if (loud()) {
            std::FILE* error = state_.error();
            std::fprintf(error, "%s: ", arguments_[0]);
            std::fprintf(error, format, values...);
            std::fputc('\n', error);
        }
    }

    void begin() {
        if (index() == 0 || !place_.begun) {
            index() = index() == 0 ? 1 : index();
            letter() = place_.begun ? letter() : 0; // as the C library's first call leaves it
            place_ = {index(), index(), nullptr, true};
        }
    }

    // Brings the operands that were passed over behind the options that followed them.
    void move_operands() {
        if (place_.first_operand != place_.last_operand && place_.last_operand != index()) {
            std::rotate(arguments_ + place_.first_operand, arguments_ + place_.last_operand,
                        arguments_ + index());
            place_.first_operand += index() - place_.last_operand;
            place_.last_operand = index();
        } else if (place_.last_operand != index()) {
            place_.first_operand = index();
        }
    }

    static bool is_operand(const char* text) { return text[0] != '-' || text[1] == 0; }

    int next_argument() {
        place_.last_operand = std::min(place_.last_operand, index());
        place_.first_operand = std::min(place_.first_operand, index());
        if (!in_order() && !operands_end()) {
            move_operands();
            while (index() < count_ && is_operand(arguments_[index()])) {
                ++index();
            }
            place_.last_operand = index();
        }
        if (index() < count_ && std::strcmp(arguments_[index()], "--") == 0) {
            ++index();
            move_operands();
            if (place_.first_operand == place_.last_operand) {
                place_.first_operand = index();
            }
            place_.last_operand = count_;
            index() = count_;
        }
        if (index() >= count_) {
            if (place_.first_operand != place_.last_operand) {
                index() = place_.first_operand;
            }
            return -1;
        }
        char* text = arguments_[index()];
        if (is_operand(text)) {
            if (!in_order()) {
                return -1;
            }
            argument() = text;
            ++index();
            return 1;
        }
        if (longs_ != nullptr) {
            if (text[1] == '-') {
                return long_option(text + 2, "--");
            }
            if (long_only_ && (text[2] != 0 || std::strchr(list(), text[1]) == nullptr)) {
                const int outcome = long_option(text + 1, "-");
                if (outcome != more) {
                    return outcome;
                }
            }
        }
        place_.next = text + 1;
        return more;
    }

    // The option that a name, up to its end or '=', means; null with `ambiguous` set for several.
    const option* find_long(const char* name, std::size_t bytes, bool& ambiguous) const {
        const option* found = nullptr;
        for (const option* one = longs_; one->name != nullptr; ++one) {
            if (std::strncmp(one->name, name, bytes) != 0) {
                continue;
            }
            if (std::strlen(one->name) == bytes) {
                ambiguous = false;
                return one;
            }
            if (found == nullptr) {
                found = one;
            } else if (long_only_ || found->has_arg != one->has_arg || found->flag != one->flag ||
                       found->val != one->val) {
                ambiguous = true;
            }
        }
        return ambiguous ? nullptr : found;
    }

    int long_option(char* name, const char* dashes) {
        const std::size_t bytes = std::strcspn(name, "=");
        bool ambiguous = false;
        const option* found = find_long(name, bytes, ambiguous);
        if (found == nullptr) {
            if (!ambiguous && long_only_ && *dashes != 0 && dashes[1] == 0 &&
                std::strchr(list(), *name) != nullptr) {
                return more; // a group of letters after all
            }
            complain(ambiguous ? "option '%s%s' is ambiguous" : "unrecognized option '%s%s'",
                     dashes, name);
            place_.next = nullptr;
            ++index();
            letter() = 0;
            return '?';
        }
        ++index();
        place_.next = nullptr;
        if (name[bytes] == '=') {
            if (found->has_arg == no_argument) {
                complain("option '%s%s' doesn't allow an argument", dashes, found->name);
                letter() = found->val;
                return '?';
            }
            argument() = name + bytes + 1;
        } else if (found->has_arg == required_argument) {
            if (index() >= count_) {
                complain("option '%s%s' requires an argument", dashes, found->name);
                letter() = found->val;
                return *list() == ':' ? ':' : '?';
            }
            argument() = arguments_[index()++];
        }
        if (which_ != nullptr) {
            *which_ = static_cast<int>(found - longs_);
        }
        if (found->flag != nullptr) {
            *found->flag = found->val;
            return 0;
        }
        return found->val;
    }

    int next_letter() {
        const int option_letter = static_cast<unsigned char>(*place_.next++);
        const char* entry = std::strchr(list(), option_letter);
        if (*place_.next == 0) {
            ++index();
        }
        if (entry == nullptr || option_letter == ':' || option_letter == ';') {
            complain("invalid option -- '%c'", option_letter);
            letter() = option_letter;
            return '?';
        }
        if (entry[1] != ':') {
            return option_letter;
        }
        if (*place_.next != 0) { // the rest of the argument
            argument() = place_.next;
            ++index();
        } else if (entry[2] != ':') {
            if (index() >= count_) {
                complain("option requires an argument -- '%c'", option_letter);
                letter() = option_letter;
                place_.next = nullptr;
                return *list() == ':' ? ':' : '?';
            }
            argument() = arguments_[index()++];
        }
        place_.next = nullptr;
        return option_letter;
    }

    LibcState& state_;
    OptionPlace& place_;
    int count_;
    char** arguments_;
    const char* letters_;
    const option* longs_;
    int* which_;
    bool long_only_;
    bool posix_;
};

} // namespace

int getopt(int count, char* const* arguments, const char* letters) {
    return Parser(count, arguments, letters, nullptr, nullptr, false).next();
}

int posix_getopt(int count, char* const* arguments, const char* letters) {
    return Parser(count, arguments, letters, nullptr, nullptr, false, true).next();
}

int getopt_long(int count, char* const* arguments, const char* letters, const option* longs,
                int* which) {
    return Parser(count, arguments, letters, longs, which, false).next();
}

int getopt_long_only(int count, char* const* arguments, const char* letters, const option* longs,
                     int* which) {
    return Parser(count, arguments, letters, longs, which, true).next();
}

} // namespace warren::image::libc
