// What the recorder of counts needs of where it runs: under DynamoRIO (platform_dynamorio.cpp) or
// in the program itself, called by what the compiler has put there (analyser/hooks/platform.cpp).
// Either keeps out of the program's way: what is asked for here is neither the program's memory nor
// among what is recorded of it. Thread rule: any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace warren::locality::counts::platform {

void* make_lock();
void lock(void* lock);
void unlock(void* lock);
bool try_lock(void* lock);

// A new file, to be written. -1: it can't be made. The number means something here only.
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

// What is in no recording that is made here, a sentence each. `sample`: in mode sample.
std::vector<std::string> limits(bool sample);

} // namespace warren::locality::counts::platform
