// MPI_Comm_spawn and MPI_Comm_spawn_multiple: arrays of strings of one length, which end with a
// blank one.

#include <string_view>
#include <vector>

#include "foreign/fortran/arguments.hpp"

namespace warren::foreign::fortran {

extern "C" int call_Comm_rank(Comm, int*) asm("PMPI_Comm_rank");
extern "C" int call_Comm_spawn(const char*, char*[], int, Info, int, Comm, Comm*,
                               int[]) asm("PMPI_Comm_spawn");
extern "C" int call_Comm_spawn_multiple(int, char*[], char**[], const int[], const Info[], int,
                                        Comm, Comm*, int[]) asm("PMPI_Comm_spawn_multiple");

namespace {

// The strings as C has them, with a null pointer behind them.
class Strings {
  public:
    // `step` bytes from one to the next; as many, or up to the blank one if `count` is negative.
    Strings(const char* first, std::size_t length, std::size_t step, int count) {
        for (int i = 0; count < 0 || i < count; ++i) {
            const std::string_view text =
                without_blanks({first + static_cast<std::size_t>(i) * step, length});
            if (count < 0 && text.empty()) {
                break;
            }
            starts_.push_back(characters_.size());
            characters_.insert(characters_.end(), text.begin(), text.end());
            characters_.push_back('\0');
        }
        for (const std::size_t start : starts_) {
            pointers_.push_back(characters_.data() + start);
        }
        pointers_.push_back(nullptr);
    }
    Strings(const Strings&) = delete;
    Strings& operator=(const Strings&) = delete;
    Strings(Strings&&) = default;

    char** data() { return pointers_.data(); }

  private:
    // Leading and trailing blanks are never part of an argument (MPI 5.0, 11.8.2).
    static std::string_view without_blanks(std::string_view text) {
        const std::size_t begin = text.find_first_not_of(' ');
        return begin == std::string_view::npos
                   ? std::string_view()
                   : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
    }

    std::vector<char> characters_;
    std::vector<std::size_t> starts_;
    std::vector<char*> pointers_;
};

bool is_root(Comm comm, int root) {
    int rank = -1;
    call_Comm_rank(comm, &rank);
    return rank == root;
}

} // namespace

WARREN_FORTRAN(comm_spawn, COMM_SPAWN,
               (char* command, char* argv, int* maxprocs, int* info, int* root, int* comm,
                int* intercomm, int* codes, int* ierror, std::size_t command_length,
                std::size_t argument_length)) {
    const Comm comm_ = integer::Comm::from(*comm);
    const bool here = is_root(comm_, *root);
    const bool has_arguments = here && !are_no_arguments(argv);
    Strings commands(command, command_length, command_length, here ? 1 : 0);
    Strings arguments(argv, argument_length, argument_length, has_arguments ? -1 : 0);
    Integer<integer::Comm, Way::out> intercomm_(intercomm);
    finish(ierror, call_Comm_spawn(commands.data()[0], has_arguments ? arguments.data() : nullptr,
                                   *maxprocs, integer::Info::from(*info), *root, comm_,
                                   intercomm_.data(), c_codes(codes)));
}

// array_of_argv(command, argument): the arguments of a command stand `count` strings apart.
WARREN_FORTRAN(comm_spawn_multiple, COMM_SPAWN_MULTIPLE,
               (int* count, char* commands, char* argv, int* maxprocs, int* info, int* root,
                int* comm, int* intercomm, int* codes, int* ierror, std::size_t command_length,
                std::size_t argument_length)) {
    const Comm comm_ = integer::Comm::from(*comm);
    const int number = is_root(comm_, *root) ? *count : 0;
    Strings commands_(commands, command_length, command_length, number);
    std::vector<Strings> arguments;
    std::vector<char**> arguments_;
    const bool has_arguments = number > 0 && !are_no_arguments(argv);
    for (int i = 0; has_arguments && i < number; ++i) {
        arguments.emplace_back(argv + static_cast<std::size_t>(i) * argument_length,
                               argument_length, static_cast<std::size_t>(number) * argument_length,
                               -1);
    }
    arguments_.reserve(arguments.size());
    for (Strings& its : arguments) {
        arguments_.push_back(its.data());
    }
    Integers<integer::Info, Way::in> info_(info, number);
    Integer<integer::Comm, Way::out> intercomm_(intercomm);
    finish(ierror, call_Comm_spawn_multiple(
                       number, commands_.data(), has_arguments ? arguments_.data() : nullptr,
                       maxprocs, info_.data(), *root, comm_, intercomm_.data(), c_codes(codes)));
}

} // namespace warren::foreign::fortran
