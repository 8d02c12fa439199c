#include "image/libc/stateful_calls.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace warren::image {

namespace {

struct StatefulCall {
    const char* name;
    const char* state;
};

constexpr const char* random_state = "the generator of random numbers";
constexpr const char* random48_state = "the 48-bit generator of random numbers";
constexpr const char* option_state = "the place in the arguments";
constexpr const char* time_state = "the broken-down time";
constexpr const char* environment_state = "the environment";
constexpr const char* user_state = "the place in the user database";
constexpr const char* group_state = "the place in the group database";
constexpr const char* host_state = "the answer about hosts and networks";
constexpr const char* hash_state = "the hash table";
constexpr const char* signal_state = "what a signal does";
constexpr const char* timer_state = "the process's timer";
constexpr const char* limit_state = "the process's limit";
constexpr const char* printf_state = "printf's conversions";
constexpr const char* conversion_state = "the state of conversions";

// In the order of strcmp.
constexpr StatefulCall calls[] = {
    {"alarm", timer_state},
    {"asctime", time_state},
    {"clearenv", environment_state},
    {"crypt", "the buffer of encryption"},
    {"ctime", time_state},
    {"drand48", random48_state},
    {"ecvt", "the buffer of conversions"},
    {"encrypt", "the key of encryption"},
    {"endgrent", group_state},
    {"endpwent", user_state},
    {"erand48", random48_state},
    {"fcvt", "the buffer of conversions"},
    {"getgrent", group_state},
    {"getgrgid", group_state},
    {"getgrnam", group_state},
    {"gethostbyaddr", host_state},
    {"gethostbyname", host_state},
    {"getlogin", "the name of the user"},
    {"getopt", option_state},
    {"getopt_long", option_state},
    {"getopt_long_only", option_state},
    {"getprotobyname", host_state},
    {"getpwent", user_state},
    {"getpwnam", user_state},
    {"getpwuid", user_state},
    {"getservbyname", host_state},
    {"gmtime", time_state},
    {"hcreate", hash_state},
    {"hdestroy", hash_state},
    {"hsearch", hash_state},
    {"initstate", random_state},
    {"jrand48", random48_state},
    {"l64a", "the buffer of conversions"},
    {"lcong48", random48_state},
    {"localtime", time_state},
    {"lrand48", random48_state},
    {"mblen", conversion_state},
    {"mbtowc", conversion_state},
    {"mrand48", random48_state},
    {"nrand48", random48_state},
    {"putenv", environment_state},
    {"rand", random_state},
    {"random", random_state},
    {"register_printf_function", printf_state},
    {"register_printf_modifier", printf_state},
    {"register_printf_specifier", printf_state},
    {"register_printf_type", printf_state},
    {"seed48", random48_state},
    {"setenv", environment_state},
    {"setgrent", group_state},
    {"setitimer", timer_state},
    {"setlocale", "the locale"},
    {"setpwent", user_state},
    {"setrlimit", limit_state},
    {"setstate", random_state},
    {"sigaction", signal_state},
    {"signal", signal_state},
    {"srand", random_state},
    {"srand48", random48_state},
    {"srandom", random_state},
    {"strtok", "the place in the string"},
    {"tmpnam", "the buffer of names"},
    {"ttyname", "the buffer of names"},
    {"tzset", "the time zone"},
    {"unsetenv", environment_state},
    {"wctomb", conversion_state},
};

} // namespace

const char* stateful_call_name(std::size_t index) {
    return index < std::size(calls) ? calls[index].name : nullptr;
}

const char* shared_state_of(const char* name) {
    const auto* found = std::lower_bound(std::begin(calls), std::end(calls), name,
                                         [](const StatefulCall& call, const char* wanted) {
                                             return std::strcmp(call.name, wanted) < 0;
                                         });
    return found != std::end(calls) && std::strcmp(found->name, name) == 0 ? found->state : nullptr;
}

} // namespace warren::image
