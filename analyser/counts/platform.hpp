// Platform of the recorder of counts: DynamoRIO (platform_dynamorio.cpp) or the program itself,
// whose compiler has inserted calls (analyser/hooks/platform.cpp). Either keeps out of the
// program's way: it uses none of the program's memory, and nothing that it does is recorded. Thread
// rule: any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace warren::locality::counts::platform {

void* make_lock();
void lock(void* lock);
void unlock(void* lock);
bool try_lock(void* lock);

// Makes a new file for writing. -1: it can't be made. The number is valid in these functions only.
int open_new(const char* path);
std::ptrdiff_t write(int file, const void* data, std::size_t bytes); // negative: it failed
std::ptrdiff_t size_of(int file);
bool truncate(int file, std::size_t bytes);
bool overwrite(int file, const void* data, std::size_t bytes); // from its beginning
void close(int file);

void* allocate(std::size_t bytes);
void release(void* memory, std::size_t bytes);

std::string executable(); // of this process; empty: not known
std::size_t page_bytes();
void sleep_ms(unsigned ms);
void say(const std::string& text); // a line for people

// Sentences that say what no recording of this platform contains. `sample`: in mode sample.
std::vector<std::string> limits(bool sample);

} // namespace warren::locality::counts::platform
