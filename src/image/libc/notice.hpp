// Notice: what a thread of the C library's is to call for an image (sigevent.cpp). NoticeQueue:
// those of an image whose threads have descriptors of their own, which the C library's threads
// don't have.
//
// Thread rule: a notice is written before the C library knows of it, and constant afterwards; a
// queue is any thread's.
#pragma once

#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>

namespace warren::image {

class Image;

struct Notice {
    Image* image;
    void (*function)(sigval);
    sigval value;
    sigevent* request; // the program's, which has to look as it did; may be null
    bool repeats;      // a timer's; others are called once, and go
};

struct NoticeQueue {
    std::mutex lock;
    std::condition_variable changed;
    std::deque<Notice> waiting;
    bool ended = false;
};

} // namespace warren::image
