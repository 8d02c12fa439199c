// Donors: how a fibre comes by a stack and thread-local variables of its own.
//
// An ordinary thread is made with the wanted stack. In its start function it hands its context over
// and its kernel thread ends by itself, without the C library's knowledge, to which the thread goes
// on; from then on it runs in whichever kernel thread resumes it. What the kernel knew of the old
// one is taken back first:
//   - the word that it clears when the thread ends (the C library's number of the thread), and the
//     list of robust mutexes, which are the thread's that ends only;
//   - restartable sequences: the C library then asks the kernel for the number of the processor.
// The number by which the C library tells owners of mutexes apart stays the fibre's, and becomes
// one that no kernel thread can have. So pthread_kill, pthread_setaffinity_np and the like say
// ESRCH for a fibre, but raise goes to the kernel thread that runs it. Robust mutexes of a fibre
// that ends, and mutexes with priority inheritance, are not for fibres.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/fibres/fibre.hpp"

namespace warren::fibre {

// Makes a thread on this stack, which runs function(argument) as the fibre once `fibre` is resumed;
// publish(fibre) is called in the new thread when that may be. Returns an errno.
int donate(Fibre& fibre, void* stack, std::size_t bytes, void (*publish)(Fibre&),
           void (*function)(void*), void* argument);

// The kernel writes no more to the calling thread's description.
void forget_restartable_sequences();

} // namespace warren::fibre
