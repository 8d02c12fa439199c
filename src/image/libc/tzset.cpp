// Times by the time zone of the image's environment, and the variables timezone, daylight and
// tzname.
//
// The C library has one zone, the process's: these functions hold a lock while they have it be the
// caller's. It looks for TZ in the process's environment, where it has an entry of ours.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cwchar>
#include <mutex>
#include <optional>
#include <string>
#include <time.h>
#include <unistd.h>

#include "image/libc/functions.hpp"
#include "image/libc/lent_environment.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

// The process's entry, which changes under the lock only.
struct ProcessZone {
    // The C library uses this value when TZ is not set. It finds no file with a longer name.
    static constexpr const char* unset = ":/etc/localtime";
    static constexpr std::size_t limit = 4096;
    static constexpr std::size_t name_bytes = 3;

    ProcessZone() {
        put(given != nullptr ? given + name_bytes : unset);
        ::putenv(entry);
    }

    // The entry in the process's environment, or null.
    static char* find() {
        for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
            if (std::strncmp(*one, "TZ=", name_bytes) == 0) {
                return *one;
            }
        }
        return nullptr;
    }

    void put(const char* zone) {
        if (std::strncmp(entry + name_bytes, zone, limit) != 0) {
            std::strncpy(entry + name_bytes, zone, limit);
        }
    }

    std::mutex lock;
    char* const given = find();
    char entry[name_bytes + limit + 1] = "TZ=";
};

std::atomic<ProcessZone*> prepared{nullptr};

ProcessZone& process_zone() {
    static ProcessZone& only = *new ProcessZone;
    return only;
}

// Some functions look for TZ when they are called, others only if none has looked before.
enum class Look : std::uint8_t { anew, once };

// While one lives, the C library's time zone is the calling image's. The environment is asked
// first: its lock is never taken by who has this one.
class OwnZone {
  public:
    explicit OwnZone(Look look = Look::anew)
        : zone_(libc::getenv("TZ")), guard_(process_zone().lock) {
        std::optional<std::string>& seen = LibcState::current().zone;
        if (look == Look::anew || !seen) {
            seen = zone_ != nullptr ? zone_ : ProcessZone::unset;
        }
        process_zone().put(seen->c_str());
        ::tzset();
    }
    OwnZone(const OwnZone&) = delete;
    OwnZone& operator=(const OwnZone&) = delete;
    // The variables are what the function has left.
    ~OwnZone() {
        LibcState& state = LibcState::current();
        state.value<long>(Variable::timezone) = ::timezone;
        state.value<int>(Variable::daylight) = ::daylight;
        std::memcpy(state.place(Variable::tzname), ::tzname, sizeof ::tzname);
    }

  private:
    const char* zone_;
    std::lock_guard<std::mutex> guard_;
};

} // namespace

void prepare_time_zone() {
    prepared.store(&process_zone(), std::memory_order_release);
}

char* given_entry(char* entry) {
    const ProcessZone* zone = prepared.load(std::memory_order_acquire);
    return zone != nullptr && entry == zone->entry ? zone->given : entry;
}

void lock_time_zone() {
    process_zone().lock.lock();
}

void unlock_time_zone() {
    process_zone().lock.unlock();
}

void tzset() {
    const OwnZone zone;
}

std::tm* localtime_r(const std::time_t* time, std::tm* result) {
    const OwnZone zone(Look::once);
    return ::localtime_r(time, result);
}

std::tm* localtime(const std::time_t* time) {
    const OwnZone zone;
    return ::localtime_r(time, &LibcState::current().time);
}

std::time_t mktime(std::tm* time) {
    const OwnZone zone;
    return std::mktime(time);
}

char* ctime_r(const std::time_t* time, char* text) {
    const OwnZone zone(Look::once);
    return ::ctime_r(time, text);
}

// Programs read the results of both functions.
char* ctime(const std::time_t* time) {
    const std::tm* local = libc::localtime(time);
    return local != nullptr ? libc::asctime(local) : nullptr;
}

std::size_t strftime(char* text, std::size_t bytes, const char* format, const std::tm* time) {
    const OwnZone zone;
    return std::strftime(text, bytes, format, time);
}

std::size_t strftime_l(char* text, std::size_t bytes, const char* format, const std::tm* time,
                       locale_t locale) {
    const OwnZone zone;
    return ::strftime_l(text, bytes, format, time, locale);
}

std::size_t wcsftime(wchar_t* text, std::size_t count, const wchar_t* format, const std::tm* time) {
    const OwnZone zone;
    return std::wcsftime(text, count, format, time);
}

std::size_t wcsftime_l(wchar_t* text, std::size_t count, const wchar_t* format, const std::tm* time,
                       locale_t locale) {
    const OwnZone zone;
    return ::wcsftime_l(text, count, format, time, locale);
}

char* strptime(const char* text, const char* format, std::tm* time) {
    const OwnZone zone;
    return ::strptime(text, format, time);
}

char* strptime_l(const char* text, const char* format, std::tm* time, locale_t locale) {
    const OwnZone zone;
    return ::strptime_l(text, format, time, locale);
}

int getdate_r(const char* text, std::tm* time) {
    const OwnZone zone;
    const LentEnvironment lent; // DATEMSK
    return ::getdate_r(text, time);
}

std::tm* getdate(const char* text) {
    LibcState& state = LibcState::current();
    const int error = libc::getdate_r(text, &state.date);
    state.value<int>(Variable::getdate_err) = error;
    return error == 0 ? &state.date : nullptr;
}

} // namespace warren::image::libc
