#include "image/libc/lent_environment.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <nl_types.h>
#include <string>
#include <unistd.h>
#include <wordexp.h>

#include "image/libc/functions.hpp"

namespace warren::image::libc {

namespace {

std::mutex*& environment_lock() {
    static std::mutex* only = new std::mutex; // outlives everything
    return only;
}

bool has_entry(char* const* list, const char* entry) {
    for (; list != nullptr && *list != nullptr; ++list) {
        if (*list == entry) {
            return true;
        }
    }
    return false;
}

} // namespace

LentEnvironment::LentEnvironment() {
    environment_lock()->lock();
    lent_ = LibcState::current().value<char**>(Variable::environment);
    former_ = environ;
    environ = lent_;
}

LentEnvironment::~LentEnvironment() {
    char** list = environ;
    environ = former_;
    for (char** entry = list; list != lent_ && *entry != nullptr; ++entry) {
        const char* equals = std::strchr(*entry, '=');
        if (equals != nullptr && !has_entry(lent_, *entry)) {
            const std::string name(*entry, static_cast<std::size_t>(equals - *entry));
            libc::setenv(name.c_str(), equals + 1, 1);
        }
    }
    environment_lock()->unlock();
}

void renew_environment_lock() {
    environment_lock() = new std::mutex;
}

int wordexp(const char* words, wordexp_t* result, int flags) {
    const LentEnvironment lent;
    return ::wordexp(words, result, flags);
}

nl_catd catopen(const char* name, int flag) {
    const LentEnvironment lent;
    return ::catopen(name, flag);
}

} // namespace warren::image::libc
