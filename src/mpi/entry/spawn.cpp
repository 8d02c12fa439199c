// Process creation (MPI chapter 11.3).

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <sys/utsname.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "mpi/coll/collectives.hpp"
#include "mpi/entry/dynamic_processes.hpp"
#include "mpi/entry/info.hpp"
#include "mpi/entry/other_worlds.hpp"
#include "mpi/entry/release.hpp"
#include "mpi/job/soft_numbers.hpp"
#include "mpi/job/spawn_request.hpp"

namespace warren::mpi {

namespace {

// A command's processes.
struct Processes {
    std::int32_t asked; // for which the caller has error codes
    std::int32_t started;
};

// The root's arguments.
struct Commands {
    int count;
    char** commands;
    char*** arguments; // null: none
    const int* processes;
    const MPI_Info* infos;
    std::vector<Processes> numbers = {}; // of each command
};

// Whether the info key host names this node: a name, perhaps with a number of slots.
bool is_this_node(std::string_view host) {
    host = host.substr(0, host.find(':'));
    utsname system = {};
    uname(&system);
    const std::string_view own = system.nodename;
    return host == "localhost" || host == "127.0.0.1" || host == own ||
           host == own.substr(0, own.find('.'));
}

Error check_host(const char* key, const std::string& host) {
    return is_this_node(host)
               ? Error{}
               : fail(MPI_ERR_SPAWN,
                      "the info key %s names \"%.80s\": processes are spawned on the node of the "
                      "root only",
                      key, host.c_str());
}

// Names with commas or spaces between them.
Error check_list_of_hosts(const comm::Info& info, const char* key) {
    const std::string* const hosts = info.find(key);
    constexpr const char* between = ", ";
    std::size_t begin = hosts != nullptr ? hosts->find_first_not_of(between) : std::string::npos;
    while (begin != std::string::npos) {
        const std::size_t end = hosts->find_first_of(between, begin);
        if (Error error = check_host(key, hosts->substr(begin, end - begin))) {
            return error;
        }
        begin = hosts->find_first_not_of(between, end);
    }
    return {};
}

// A line for each host, which is its first word.
Error check_file_of_hosts(const comm::Info& info) {
    const std::string* const path = info.find("hostfile");
    if (path == nullptr) {
        return {};
    }
    std::FILE* const file = std::fopen(path->c_str(), "re");
    if (file == nullptr) {
        return fail(MPI_ERR_SPAWN, "the info key hostfile names \"%.80s\": %s", path->c_str(),
                    std::strerror(errno));
    }
    Error error;
    char* line = nullptr;
    std::size_t room = 0;
    errno = 0;
    while (!error && getline(&line, &room, file) >= 0) {
        const std::string_view text = line;
        constexpr const char* blank = " \t\r\n";
        const std::size_t begin = std::min(text.find_first_not_of(blank), text.size());
        const std::string host(text.substr(begin, text.find_first_of(blank, begin) - begin));
        if (!host.empty() && host.front() != '#') {
            error = check_host("hostfile", host);
        }
    }
    if (!error && std::ferror(file) != 0) {
        error = fail(MPI_ERR_SPAWN, "the info key hostfile names \"%.80s\": %s", path->c_str(),
                     std::strerror(errno));
    }
    std::free(line);
    std::fclose(file);
    return error;
}

Error check_hosts(const comm::Info& info) {
    Error error = check_list_of_hosts(info, "host");
    error = error ? error : check_list_of_hosts(info, "hosts");
    return error ? error : check_file_of_hosts(info);
}

// Settings NAME=VALUE, one a line.
Error add_environment(const std::string& value, std::vector<std::string>& words) {
    for (std::size_t begin = 0; begin < value.size();) {
        const std::size_t end = std::min(value.find('\n', begin), value.size());
        const std::string setting = value.substr(begin, end - begin);
        begin = end + 1;
        const std::size_t equals = setting.find('=');
        if (setting.empty()) {
            continue;
        }
        if (equals == std::string::npos || equals == 0) {
            return fail(MPI_ERR_INFO_VALUE,
                        "the info key env has the line \"%.80s\", which is not NAME=VALUE",
                        setting.c_str());
        }
        words.insert(words.end(), {"-env", setting.substr(0, equals), setting.substr(equals + 1)});
    }
    return {};
}

Error add_directory(const comm::Info& info, std::vector<std::string>& words) {
    if (const std::string* directory = info.find("wdir")) {
        words.insert(words.end(), {"-wdir", *directory});
        return {};
    }
    char own[PATH_MAX];
    if (getcwd(own, sizeof own) != nullptr) {
        words.insert(words.end(), {"-wdir", own});
    }
    return {};
}

// The info keys of one command.
Error add_info(const comm::Info& info, std::vector<std::string>& words) {
    if (Error error = add_directory(info, words)) {
        return error;
    }
    if (const std::string* path = info.find("path")) {
        words.insert(words.end(), {"-path", *path});
    }
    if (const std::string* arch = info.find("arch")) {
        words.insert(words.end(), {"-arch", *arch});
    }
    if (Error error = check_hosts(info)) {
        return error;
    }
    const std::string* settings = info.find("env");
    return settings != nullptr ? add_environment(*settings, words) : Error{};
}

// Keys that are the same for all commands, of the first.
void add_common_info(const comm::Info& info, std::vector<std::string>& words) {
    if (const std::string* ranks = info.find("warren_ranks")) {
        words.insert(words.end(), {"--ranks", *ranks});
    }
    if (const std::string* handler = info.find("mpi_initial_errhandler")) {
        words.insert(words.end(), {"-initial-errhandler", *handler});
    }
}

// Chooses the largest of the numbers that would do, up to what is asked for.
Error find_number(const comm::Info& info, int number, Processes& its) {
    its.started = its.asked;
    const std::string* const soft = info.find("soft");
    if (soft == nullptr) {
        return {};
    }
    std::optional<std::uint32_t> largest;
    if (!node::largest_soft_number(*soft, static_cast<std::uint32_t>(its.asked), largest)) {
        return fail(
            MPI_ERR_INFO_VALUE,
            "the info key soft is \"%.80s\", not numbers of processes, as in 2:8:2 or 1,4,16",
            soft->c_str());
    }
    if (!largest) {
        return fail(
            MPI_ERR_SPAWN,
            "command %d: none of the numbers of the info key soft, \"%.80s\", is from 0 to %d",
            number, soft->c_str(), its.asked);
    }
    its.started = static_cast<std::int32_t>(*largest);
    return {};
}

// mpiexec takes a colon alone for the end of a program's arguments.
std::string escaped(const char* argument) {
    return std::strcmp(argument, ":") == 0 || argument[0] == node::spawn_escape
               ? node::spawn_escape + std::string(argument)
               : argument;
}

Error check_command(const Commands& given, int number) {
    if (given.commands[number] == nullptr || given.commands[number][0] == '\0') {
        return fail(MPI_ERR_SPAWN, "command %d is empty", number);
    }
    if (given.processes[number] < 0) {
        return fail(MPI_ERR_SPAWN, "command %d: %d processes are asked for", number,
                    given.processes[number]);
    }
    return {};
}

// The command line of the spawned world's mpiexec.
Error words_of(Context& context, Commands& given, std::vector<std::string>& words) {
    if (given.count <= 0 || given.commands == nullptr || given.processes == nullptr ||
        given.infos == nullptr) {
        return fail(MPI_ERR_ARG, "count = %d, or an array that the root needs is null",
                    given.count);
    }
    words = {"--bind-to", "none"};
    bool first = true;
    for (int number = 0; number < given.count; ++number) {
        if (Error error = check_command(given, number)) {
            return error;
        }
        comm::Info info;
        if (Error error = copy_info(context.process, given.infos[number], info)) {
            return error;
        }
        if (number == 0) {
            add_common_info(info, words);
        }
        Processes& its = given.numbers[static_cast<std::size_t>(number)];
        if (Error error = find_number(info, number, its)) {
            return error;
        }
        if (its.started == 0) {
            continue;
        }
        if (!std::exchange(first, false)) {
            words.emplace_back(":");
        }
        words.insert(words.end(), {"-n", std::to_string(its.started)});
        if (Error error = add_info(info, words)) {
            return error;
        }
        // The command is no option, however it begins.
        words.insert(words.end(), {"--", escaped(given.commands[number])});
        char** argument = given.arguments != nullptr ? given.arguments[number] : nullptr;
        for (; argument != nullptr && *argument != nullptr; ++argument) {
            words.push_back(escaped(*argument));
        }
    }
    return !first ? Error{} : fail(MPI_ERR_SPAWN, "no process is asked for");
}

// At the root: has the processes started, and waits until they connect.
Error start_world(Context& context, void* arguments, Meeting& found) {
    auto& given = *static_cast<Commands*>(arguments);
    std::vector<std::string> words;
    if (Error error = words_of(context, given, words)) {
        return error;
    }
    PortName port = {.process = {.world = node::world_number(context.rank.segment),
                                 .rank = context.rank.world_rank}};
    Ports& ports = context.ports;
    if (Error error = ports.open(port.number)) {
        return error;
    }
    Launcher::Request request;
    Error error = context.launcher.ask(
        port.text(), words, [&] { pause_between_attempts(context); }, request);
    if (!error) {
        message::Engine& engine = context.messages;
        message::OtherWorlds::bridge(engine)->watch(request.connection);
        bool failed = false;
        bool connected = false;
        std::string reason;
        while (!failed && !connected) {
            engine.wait_until(
                [&] {
                    failed = failed || Launcher::has_failed(request, reason);
                    return failed || ports.first_caller(port.number) != nullptr;
                },
                {.call = engine.current_call});
            connected = !failed && accept_first(context, port.number, 0, found);
        }
        message::OtherWorlds::bridge(engine)->forget(request.connection);
        if (!connected) {
            Launcher::end(request);
        } else {
            connected = context.launcher.end_connected(request, reason);
        }
        if (!connected) {
            error =
                fail(MPI_ERR_SPAWN, "%s",
                     reason.empty() ? "the processes have ended without MPI_Init" : reason.c_str());
        }
    }
    ports.close(port.number);
    return error;
}

// Only the root knows how many processes were asked for, and were started.
Error tell_numbers(Context& context, comm::Communicator& comm, int root,
                   std::vector<Processes>& numbers) {
    coll::Collectives among(context.messages, comm);
    std::uint64_t commands = numbers.size();
    if (Error error = among.bcast(coll::bytes_of(&commands, sizeof commands), root)) {
        return error;
    }
    numbers.resize(commands);
    return among.bcast(coll::bytes_of(numbers.data(), commands * sizeof(Processes)), root);
}

void fill_codes(const std::vector<Processes>& numbers, bool spawned, int* codes) {
    for (const Processes& its : numbers) {
        const std::int32_t started = spawned ? its.started : 0;
        codes = std::fill_n(codes, started, MPI_SUCCESS);
        codes = std::fill_n(codes, its.asked - started, MPI_ERR_SPAWN);
    }
}

Error spawn(Context& context, Commands given, int root, comm::Communicator& comm,
            MPI_Comm* intercomm, int array_of_errcodes[]) {
    *intercomm = MPI_COMM_NULL;
    if (comm.inter()) {
        return fail(MPI_ERR_COMM, "the communicator is an intercommunicator");
    }
    const bool is_root = comm.rank() == root;
    for (int number = 0; is_root && given.processes != nullptr && number < given.count; ++number) {
        given.numbers.push_back({.asked = std::max(given.processes[number], 0), .started = 0});
    }
    comm::Communicator* made = nullptr;
    Error error = meet(context, comm, root, start_world, &given,
                       "the root could not spawn the processes", made);
    Error told = tell_numbers(context, comm, root, given.numbers);
    if (array_of_errcodes != MPI_ERRCODES_IGNORE) {
        fill_codes(given.numbers, !error, array_of_errcodes);
    }
    if (error) {
        told.drop();
        return error;
    }
    if (told) {
        return told;
    }
    inherit(context, comm, *made);
    *intercomm = context.communicators.handle_of(*made);
    return {};
}

} // namespace

Error comm_spawn(Context& context, const char* command, char* argv[], int maxprocs, MPI_Info info,
                 int root, comm::Communicator& comm, MPI_Comm* intercomm, int array_of_errcodes[]) {
    char* commands[] = {const_cast<char*>(command)};
    return spawn(context,
                 {.count = 1,
                  .commands = commands,
                  .arguments = &argv,
                  .processes = &maxprocs,
                  .infos = &info},
                 root, comm, intercomm, array_of_errcodes);
}

Error comm_spawn_multiple(Context& context, int count, char* array_of_commands[],
                          char** array_of_argv[], const int array_of_maxprocs[],
                          const MPI_Info array_of_info[], int root, comm::Communicator& comm,
                          MPI_Comm* intercomm, int array_of_errcodes[]) {
    return spawn(context,
                 {.count = count,
                  .commands = array_of_commands,
                  .arguments = array_of_argv,
                  .processes = array_of_maxprocs,
                  .infos = array_of_info},
                 root, comm, intercomm, array_of_errcodes);
}

} // namespace warren::mpi
