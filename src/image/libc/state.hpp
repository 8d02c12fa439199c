// LibcState: what the C library keeps one of for a process, and an image has of its own: where
// option parsing stands, the generators of random numbers, the buffers that functions return, the
// environment, the standard streams, the locale.
//
// Variables that programs see (optind, stdout, environ, …) have a place: in here, or in the program
// when that has a copy of the variable (COPY relocation). Whoever reads them here goes by the
// place. Thread rule: its image's threads; what the C library makes safe for threads (the
// environment, random numbers, streams) is so here too, the rest isn't there either.
#pragma once

#include <array>
#include <clocale>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace warren::image {

// The variables that images have in place of the C library's.
enum class Variable : std::uint8_t {
    optarg,
    optind,
    opterr,
    optopt,
    environment,
    standard_input,
    standard_output,
    standard_error,
    program_path,
    program_name,
};
inline constexpr std::size_t variable_count = 10;

// Which variable a name means, if any.
bool find_variable(const char* name, Variable& variable);

// Where getopt is within the arguments, beside the variables that programs see (getopt.cpp).
struct OptionPlace {
    int first_operand = 0; // operands that were passed over lie in [first_operand, last_operand)
    int last_operand = 0;
    char* next = nullptr; // the next letter of a group of options
    bool begun = false;
};

// The streams of an image (stdio.cpp).
struct Descriptors {
    int input = 0; // -1: nothing to be read
    int output = 1;
    int error = 2;
    bool own_table = false; // a program's first thread will have these as 0, 1 and 2
};

class LibcState {
  public:
    LibcState();
    LibcState(const LibcState&) = delete;
    LibcState& operator=(const LibcState&) = delete;
    ~LibcState();

    // Opens the standard streams.
    void open_streams(const Descriptors& descriptors);
    // Writes what streams still hold, as the end of a process does.
    void flush_streams();
    // Whether it is one that open_streams has opened; its end, after which it can still be named.
    bool is_standard(const std::FILE* stream) const;
    static int close_standard(std::FILE* stream);
    // The streams that use the descriptor use another one.
    void move_stream(int from, int to);
    // Forgets it, as a process does that is killed.
    void drop_output();
    // Gives the image its arguments' and environment's names.
    void begin(char** arguments, char** environment);

    // The place of a variable; the owner of a COPY relocation changes it.
    void*& place(Variable variable) { return places_[static_cast<std::size_t>(variable)]; }
    template <typename T>
    T& value(Variable variable) {
        return *static_cast<T*>(place(variable));
    }
    std::FILE* output() { return value<std::FILE*>(Variable::standard_output); }
    std::FILE* input() { return value<std::FILE*>(Variable::standard_input); }
    std::FILE* error() { return value<std::FILE*>(Variable::standard_error); }
    const char* program_name() { return value<char*>(Variable::program_name); }

    // The state of the calling thread's image; of a stand-in for threads of none.
    static LibcState& current();

    OptionPlace options;
    // random and its kin; the C library's own algorithm and first state.
    std::mutex random_lock;
    random_data random{};
    std::array<char, 128> random_state{};
    drand48_data random48{};
    // Results of functions that return pointers.
    char* string_place = nullptr; // strtok
    std::tm time{};
    std::array<char, 128> time_text{};
    // The environment: strings that setenv made.
    std::recursive_mutex environment_lock;
    std::set<std::unique_ptr<char[]>> environment_strings;
    std::unique_ptr<char*[]> first_environment; // which main's argument is, too
    std::unique_ptr<char*[]> environment_list;  // after the first change
    // The locale (setlocale.cpp): of threads that the image makes, null until it has one; and
    // what setlocale returned.
    locale_t locale = nullptr;
    std::vector<locale_t> locales; // all that there were: threads may use them
    std::array<std::string, 13> locale_names;
    std::string all_locale_names = "C";
    // Streams that the program has opened.
    std::mutex streams_lock;
    std::set<std::FILE*> streams;
    std::map<std::FILE*, pid_t> commands; // of popen

  private:
    std::set<std::FILE*> open_streams();

    std::array<void*, variable_count> places_{};
    // The values, until a program has copies.
    char* optarg_ = nullptr;
    int optind_ = 1;
    int opterr_ = 1;
    int optopt_ = '?';
    char** environment_ = nullptr;
    std::FILE* streams_[3] = {};
    int null_descriptor_ = -1; // the input's, when there is nothing to be read
    char* program_path_ = nullptr;
    char* program_name_ = nullptr;
};

} // namespace warren::image
