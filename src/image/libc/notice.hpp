// Notice: what a thread of the C library's is to call for an image (sigevent.cpp).
//
// Thread rule: written before the C library knows of it, constant afterwards.
#pragma once

#include <csignal>

namespace warren::image {

class Image;

struct Notice {
    Image* image;
    void (*function)(sigval);
    sigval value;
    sigevent* request; // the program's, which has to look as it did; may be null
    bool repeats;      // a timer's; others are called once, and go
};

} // namespace warren::image
