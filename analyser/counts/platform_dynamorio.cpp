#include "analyser/counts/platform.hpp"

#include <unistd.h>

#include "analyser/recorder/file_limit.hpp"
#include "dr_api.h"

namespace warren::locality::counts::platform {

void* make_lock() {
    return dr_mutex_create();
}

void lock(void* lock) {
    dr_mutex_lock(lock);
}

void unlock(void* lock) {
    dr_mutex_unlock(lock);
}

bool try_lock(void* lock) {
    return dr_mutex_trylock(lock);
}

int open_new(const char* path) {
    const file_t file = dr_open_file(path, DR_FILE_WRITE_REQUIRE_NEW);
    return file == INVALID_FILE ? -1 : file;
}

std::ptrdiff_t write(int file, const void* data, std::size_t bytes) {
    const std::uint64_t most = allowed_bytes(static_cast<std::uint64_t>(size_of(file)), bytes);
    return most == 0 ? -1 : dr_write_file(file, data, most);
}

std::ptrdiff_t size_of(int file) {
    return lseek(file, 0, SEEK_END);
}

bool truncate(int file, std::size_t bytes) {
    return ftruncate(file, static_cast<off_t>(bytes)) == 0;
}

bool overwrite(int file, const void* data, std::size_t bytes) {
    return allowed_bytes(0, bytes) == bytes &&
           pwrite(file, data, bytes, 0) == static_cast<ssize_t>(bytes);
}

void close(int file) {
    dr_close_file(file);
}

void* allocate(std::size_t bytes) {
    return dr_global_alloc(bytes);
}

void release(void* memory, std::size_t bytes) {
    dr_global_free(memory, bytes);
}

std::string executable() {
    std::string path;
    if (module_data_t* const program = dr_get_main_module()) {
        path = program->full_path != nullptr ? program->full_path : "";
        dr_free_module_data(program);
    }
    return path;
}

std::size_t page_bytes() {
    return dr_page_size();
}

void sleep_ms(unsigned ms) {
    dr_sleep(static_cast<int>(ms));
}

void say(const std::string& text) {
    dr_fprintf(STDERR, "warren locality: %s\n", text.c_str());
}

std::vector<std::string> limits(bool sample) {
    // Mode sample does not follow the kernel's writes; page faults show its first touches instead.
    const char* const unseen =
        sample ? "accesses within system calls are not counted"
               : "accesses within system calls are not counted; memory that read, pread64 or "
                 "recvfrom fill is first touched by who calls them, memory that others fill by "
                 "whoever accesses it next";
    return {unseen};
}

} // namespace warren::locality::counts::platform
