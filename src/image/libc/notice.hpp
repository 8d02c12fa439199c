// Notice: what a thread of the C library's is to call for an image (sigevent.cpp). NoticeQueue:
// those of an image whose threads have descriptors of their own, which the C library's threads
// don't have.
//
// Thread rule: a notice is written before the C library knows of it, and constant afterwards; a
// queue is any thread's.
#pragma once

#include <aio.h>
#include <condition_variable>
#include <csignal>
#include <cstdint>
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

namespace libc {

// Whose the signal of an event is, known by the thread that asks for it.
struct EventReceiver {
    EventReceiver();
    bool has_number = false;
    std::uint32_t number = 0; // the host's
};

// Tells an image as it has asked: by a signal to it, or a call in a thread of its own.
void notify(Image& image, const EventReceiver& receiver, const sigevent& event, int code);
// Starts a thread that belongs to no image and has the calling thread's descriptors. An errno.
int begin_detached(void* (*function)(void*), void* argument);

// The C library's asynchronous operations; its threads call the image's functions.
int begin_by_library(aiocb* request, int (*begin_operation)(aiocb*));
int begin_all_by_library(int mode, aiocb* const* requests, int count, const sigevent* event);

} // namespace libc

} // namespace warren::image
