// setlocale of an image. The C library's changes the process; an image's threads use a locale of
// their own instead, which the C library looks at first. It is in a thread-local variable of the
// C library, which setlocale changes for all threads of the image that have chosen none
// (uselocale).
#include <atomic>
#include <cerrno>
#include <clocale>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <link.h>
#include <span>
#include <vector>

#include "image/architecture.hpp"
#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"
#include "image/thread.hpp"

namespace warren::image::libc {

namespace {

struct Category {
    int number;
    int mask;
    const char* name;
};

constexpr Category categories[] = {
    {LC_CTYPE, LC_CTYPE_MASK, "LC_CTYPE"},
    {LC_NUMERIC, LC_NUMERIC_MASK, "LC_NUMERIC"},
    {LC_TIME, LC_TIME_MASK, "LC_TIME"},
    {LC_COLLATE, LC_COLLATE_MASK, "LC_COLLATE"},
    {LC_MONETARY, LC_MONETARY_MASK, "LC_MONETARY"},
    {LC_MESSAGES, LC_MESSAGES_MASK, "LC_MESSAGES"},
    {LC_PAPER, LC_PAPER_MASK, "LC_PAPER"},
    {LC_NAME, LC_NAME_MASK, "LC_NAME"},
    {LC_ADDRESS, LC_ADDRESS_MASK, "LC_ADDRESS"},
    {LC_TELEPHONE, LC_TELEPHONE_MASK, "LC_TELEPHONE"},
    {LC_MEASUREMENT, LC_MEASUREMENT_MASK, "LC_MEASUREMENT"},
    {LC_IDENTIFICATION, LC_IDENTIFICATION_MASK, "LC_IDENTIFICATION"},
};

std::string& name_of(LibcState& state, int category) {
    return state.locale_names[static_cast<std::size_t>(category)];
}

// The environment's locale for a category, as for the name "".
std::string name_from_environment(const char* category) {
    for (const char* variable : {"LC_ALL", category, "LANG"}) {
        const char* value = libc::getenv(variable);
        if (value != nullptr && *value != 0) {
            return value;
        }
    }
    return "C";
}

// One name when all categories have the same, else a list that setlocale takes back.
const char* name_of_all(LibcState& state) {
    std::string list;
    bool same = true;
    for (const Category& category : categories) {
        const std::string& name = name_of(state, category.number);
        same &= name == name_of(state, LC_CTYPE);
        list.append(list.empty() ? "" : ";").append(category.name).append("=").append(name);
    }
    state.all_locale_names = same ? name_of(state, LC_CTYPE) : list;
    return state.all_locale_names.c_str();
}

// The part of a list that concerns a category; names that are no list are for all.
std::string part_of(const char* names, const Category& category) {
    if (std::strchr(names, ';') == nullptr) {
        return *names == 0 ? name_from_environment(category.name) : names;
    }
    const std::string key = std::string(category.name) + "=";
    const char* found = std::strstr(names, key.c_str());
    return found == nullptr
               ? ""
               : std::string(found + key.size(), std::strcspn(found + key.size(), ";"));
}

// The words of the C library's thread-local variables, of the calling thread.
struct Words {
    locale_t* begin = nullptr;
    locale_t* end = nullptr;
};

int find_words_of_libc(dl_phdr_info* library, std::size_t, void* found) {
    const auto code = reinterpret_cast<std::uintptr_t>(&::uselocale);
    bool is_libc = false;
    std::size_t bytes = 0;
    for (const ElfW(Phdr) & part : std::span(library->dlpi_phdr, library->dlpi_phnum)) {
        is_libc |=
            part.p_type == PT_LOAD && code - library->dlpi_addr - part.p_vaddr < part.p_memsz;
        bytes = part.p_type == PT_TLS ? part.p_memsz : bytes;
    }
    if (is_libc && library->dlpi_tls_data != nullptr) {
        auto* begin = static_cast<locale_t*>(library->dlpi_tls_data);
        *static_cast<Words*>(found) = {begin, begin + bytes / sizeof(locale_t)};
    }
    return is_libc ? 1 : 0;
}

// From the thread pointer to the thread's locale, which is the word that uselocale changes; 0:
// unknown.
std::ptrdiff_t find_place() {
    Words words;
    ::dl_iterate_phdr(find_words_of_libc, &words);
    const locale_t first = newlocale(LC_ALL_MASK, "C", nullptr);
    const locale_t second = ::duplocale(first);
    const locale_t former = ::uselocale(first);
    const std::vector<locale_t> before(words.begin, words.end);
    ::uselocale(second);
    std::vector<locale_t*> changed;
    for (locale_t* word = words.begin; word != words.end; ++word) {
        if (before[static_cast<std::size_t>(word - words.begin)] == first && *word == second) {
            changed.push_back(word);
        }
    }
    ::uselocale(former);
    freelocale(second);
    return changed.size() == 1
               ? reinterpret_cast<std::byte*>(changed.front()) - architecture::thread_pointer()
               : 0;
}

void give(const Thread& thread, locale_t locale) {
    static const std::ptrdiff_t place = find_place();
    if (place != 0 && thread.follows_setlocale) {
        std::atomic_ref<locale_t>(*reinterpret_cast<locale_t*>(thread.pointer + place))
            .store(locale, std::memory_order_release);
    }
}

bool has_own_locale() {
    const Thread* thread = current_thread();
    return thread != nullptr && thread->has_own_locale;
}

} // namespace

void begin_locale(Thread& thread) {
    LibcState& state = thread.image->libc_state();
    const std::lock_guard guard(state.environment_lock);
    if (state.locale != nullptr) {
        ::uselocale(state.locale);
    }
    thread.follows_setlocale = true;
}

void end_locale(Thread& thread) {
    const std::lock_guard guard(thread.image->libc_state().environment_lock);
    thread.follows_setlocale = false;
    ::uselocale(LC_GLOBAL_LOCALE);
}

// The image has the global locale that a process would have.
locale_t uselocale(locale_t wanted) {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.environment_lock);
    const bool had_own = has_own_locale();
    const bool is_image = wanted == LC_GLOBAL_LOCALE && state.locale != nullptr;
    const locale_t former = ::uselocale(is_image ? state.locale : wanted);
    if (Thread* thread = current_thread(); thread != nullptr && former != nullptr) {
        thread->has_own_locale = wanted != nullptr ? wanted != LC_GLOBAL_LOCALE : had_own;
        thread->follows_setlocale = !thread->has_own_locale;
    }
    return former != nullptr && !had_own ? LC_GLOBAL_LOCALE : former;
}

locale_t duplocale(locale_t given) {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.environment_lock);
    const bool is_image = given == LC_GLOBAL_LOCALE && state.locale != nullptr;
    return ::duplocale(is_image ? state.locale : given);
}

char* setlocale(int category, const char* names) {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.environment_lock);
    if (category != LC_ALL && (category < 0 || category > LC_IDENTIFICATION)) {
        errno = EINVAL;
        return nullptr;
    }
    if (names != nullptr) {
        locale_t made = state.locale != nullptr ? ::duplocale(state.locale)
                                                : newlocale(LC_ALL_MASK, "C", nullptr);
        auto new_names = state.locale_names;
        for (const Category& one : categories) {
            if (category != LC_ALL && category != one.number) {
                continue;
            }
            std::string name = part_of(names, one);
            locale_t changed = newlocale(one.mask, name.c_str(), made);
            if (changed == nullptr) {
                freelocale(made);
                return nullptr;
            }
            made = changed;
            new_names[static_cast<std::size_t>(one.number)] = name == "POSIX" ? "C" : name;
        }
        if (!has_own_locale()) {
            ::uselocale(made);
        }
        if (Image* image = current_image()) {
            image->for_threads([made](const Thread& thread) { give(thread, made); });
        }
        state.locale = made;
        state.locales.push_back(made);
        state.locale_names = std::move(new_names);
    }
    return const_cast<char*>(category == LC_ALL ? name_of_all(state)
                                                : name_of(state, category).c_str());
}

} // namespace warren::image::libc
