#include "mpi/entry/info.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <sys/utsname.h>
#include <unistd.h>

#include "mpi/entry/context.hpp"
#include "mpi/entry/memory_kinds.hpp"
#include "mpi/entry/process.hpp"

namespace warren::mpi {

namespace {

Error check_key(const char* key) {
    const std::size_t length = strnlen(key, MPI_MAX_INFO_KEY);
    if (length == 0) {
        return fail(MPI_ERR_INFO_KEY, "key is empty");
    }
    if (length >= MPI_MAX_INFO_KEY) {
        return fail(MPI_ERR_INFO_KEY, "key \"%.40s…\" is longer than %d characters", key,
                    MPI_MAX_INFO_KEY - 1);
    }
    return {};
}

std::string text_of_file(const char* path) {
    std::string text;
    if (FILE* file = std::fopen(path, "re")) {
        char part[4096];
        while (const std::size_t bytes = std::fread(part, 1, sizeof part, file)) {
            text.append(part, bytes);
        }
        std::fclose(file);
    }
    return text;
}

// Sets the keys of MPI 5.0, 11.5 about the program's start, as far as they are known.
void describe_start(comm::Info& info, const std::vector<std::string>& arguments) {
    if (!arguments.empty()) {
        info.set("command", arguments[0]);
        std::string rest;
        for (std::size_t i = 1; i < arguments.size(); ++i) {
            rest += (i > 1 ? " " : "") + arguments[i];
        }
        if (!rest.empty()) {
            info.set("argv", rest.substr(0, MPI_MAX_INFO_VAL - 1));
        }
    }
    if (const char* size = std::getenv("WARREN_SIZE")) {
        info.set("maxprocs", size);
    }
    if (const std::string_view kinds = memory_kinds_of_start(); !kinds.empty()) {
        info.set(memory_kinds_key, std::string(kinds));
    }
    char directory[MPI_MAX_INFO_VAL];
    if (getcwd(directory, sizeof directory) != nullptr) {
        info.set("wdir", directory);
    }
    utsname machine;
    if (uname(&machine) == 0) {
        info.set("host", machine.nodename);
        info.set("arch", machine.machine);
    }
}

// The program's own command line; a process's is the kernel's to tell.
std::vector<std::string> own_arguments() {
    if (char** list = program_arguments()) {
        std::vector<std::string> arguments;
        for (; *list != nullptr; ++list) {
            arguments.emplace_back(*list);
        }
        return arguments;
    }
    const std::string text = text_of_file("/proc/self/cmdline");
    std::vector<std::string> arguments;
    for (std::size_t at = 0; at < text.size();) {
        arguments.emplace_back(text.c_str() + at);
        at += arguments.back().size() + 1;
    }
    return arguments;
}

// The thread level that MPI has been initialised with, once it is.
void describe_threads(comm::Info& info) {
    const Context* context = process_context();
    if (context != nullptr) {
        static constexpr struct {
            int level;
            const char* name;
        } levels[] = {{MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE"},
                      {MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"},
                      {MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"},
                      {MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"}};
        for (const auto& known : levels) {
            if (known.level == context->thread_level) {
                info.set("thread_level", known.name);
            }
        }
    }
}

// MPI_INFO_ENV is filled when somebody looks.
const comm::Info& readable(Process& process, comm::Info& info) {
    if (&info == &process.infos.environment() && !process.environment_known) {
        describe_start(info, own_arguments());
        describe_threads(info);
        process.environment_known = process_context() != nullptr;
    }
    return info;
}

Error check_writable(Process& process, const comm::Info& info) {
    if (&info == &process.infos.environment()) {
        return fail(MPI_ERR_INFO, "MPI_INFO_ENV can only be read");
    }
    return {};
}

Error no_more_objects() {
    return fail(MPI_ERR_NO_MEM, "no memory for an info object");
}

} // namespace

Error make_info(Process& process, const comm::Info* hints, MPI_Info* info) {
    const comm::Info* made =
        hints != nullptr ? process.infos.insert(*hints) : process.infos.insert();
    if (made == nullptr) {
        return no_more_objects();
    }
    *info = process.infos.handle_of(*made);
    return {};
}

Error info_create(Process& process, MPI_Info* info) {
    return make_info(process, nullptr, info);
}

Error info_create_env(Process& process, int argc, char* argv[], MPI_Info* info) {
    std::vector<std::string> arguments = own_arguments();
    if (argc > 0 && argv != nullptr) {
        arguments.assign(argv, argv + argc);
    }
    comm::Info* made = process.infos.insert();
    if (made == nullptr) {
        return no_more_objects();
    }
    describe_start(*made, arguments);
    *info = process.infos.handle_of(*made);
    return {};
}

Error info_dup(Process& process, comm::Info& info, MPI_Info* newinfo) {
    return make_info(process, &readable(process, info), newinfo);
}

Error info_free(Process& process, comm::Info& info) {
    if (Error error = check_writable(process, info)) {
        return error;
    }
    process.infos.remove(info);
    return {};
}

Error info_set(Process& process, comm::Info& info, const char* key, const char* value) {
    if (Error error = check_writable(process, info)) {
        return error;
    }
    if (Error error = check_key(key)) {
        return error;
    }
    const std::size_t length = strnlen(value, MPI_MAX_INFO_VAL);
    if (length >= MPI_MAX_INFO_VAL) {
        return fail(MPI_ERR_INFO_VALUE, "the value of \"%s\" is longer than %d characters", key,
                    MPI_MAX_INFO_VAL - 1);
    }
    info.set(key, value);
    return {};
}

Error info_delete(Process& process, comm::Info& info, const char* key) {
    if (Error error = check_writable(process, info)) {
        return error;
    }
    if (Error error = check_key(key)) {
        return error;
    }
    if (!info.remove(key)) {
        return fail(MPI_ERR_INFO_NOKEY, "key \"%s\" is not set", key);
    }
    return {};
}

Error info_get_string(Process& process, comm::Info& info, const char* key, int* buflen, char* value,
                      int* flag) {
    if (Error error = check_key(key)) {
        return error;
    }
    if (*buflen > 0 && value == nullptr) {
        return fail(MPI_ERR_ARG, "value is a null pointer, but buflen is %d", *buflen);
    }
    const std::string* found = readable(process, info).find(key);
    *flag = found != nullptr;
    if (found == nullptr) {
        return {};
    }
    if (*buflen > 0) {
        const std::size_t bytes = std::min(found->size(), static_cast<std::size_t>(*buflen) - 1);
        std::memcpy(value, found->data(), bytes);
        value[bytes] = '\0';
    }
    *buflen = static_cast<int>(found->size()) + 1;
    return {};
}

Error info_get(Process& process, comm::Info& info, const char* key, int valuelen, char* value,
               int* flag) {
    if (valuelen < 0) {
        return fail(MPI_ERR_ARG, "valuelen = %d is negative", valuelen);
    }
    int room = valuelen + 1; // of the array, the final 0 included
    return info_get_string(process, info, key, &room, value, flag);
}

Error info_get_valuelen(Process& process, comm::Info& info, const char* key, int* valuelen,
                        int* flag) {
    int room = 0;
    if (Error error = info_get_string(process, info, key, &room, nullptr, flag)) {
        return error;
    }
    if (*flag != 0) {
        *valuelen = room - 1;
    }
    return {};
}

Error info_get_nkeys(Process& process, comm::Info& info, int* nkeys) {
    *nkeys = readable(process, info).keys();
    return {};
}

Error info_get_nthkey(Process& process, comm::Info& info, int n, char* key) {
    const comm::Info& read = readable(process, info);
    if (n < 0 || n >= read.keys()) {
        return fail(MPI_ERR_ARG, "n = %d is not in 0 … %d", n, read.keys() - 1);
    }
    std::memcpy(key, read.key(n).c_str(), read.key(n).size() + 1);
    return {};
}

Error copy_info(Process& process, MPI_Info handle, comm::Info& copy) {
    if (handle == MPI_INFO_NULL) {
        copy = {};
        return {};
    }
    const std::lock_guard lock(process.mutex);
    const comm::Info* const info = process.infos.find(handle);
    if (info == nullptr) {
        return fail(MPI_ERR_INFO, "info is no info object");
    }
    copy = *info;
    return {};
}

} // namespace warren::mpi
