/* Private images: programs and libraries of which one process has many copies, each with its own
   variables, all sharing their code.

   Functions return WARREN_IMAGE_SUCCESS or one of the errors below. */
#ifndef WARREN_IMAGE_H
#define WARREN_IMAGE_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WARREN_IMAGE_SUCCESS = 0,
    WARREN_IMAGE_ERR_FILE = 1,       /* a file is not there or can't be read */
    WARREN_IMAGE_ERR_DAMAGED = 2,    /* a file is no program or library, or a damaged one */
    WARREN_IMAGE_ERR_UNSUITABLE = 3, /* a sound file that can't be copied within a process */
    WARREN_IMAGE_ERR_SYMBOL = 4,     /* nobody defines a symbol that a file needs */
    WARREN_IMAGE_ERR_MEMORY = 5,     /* memory, address space or thread-local memory ran out */
    WARREN_IMAGE_ERR_HOST = 6,       /* the process is not prepared for images */
    WARREN_IMAGE_ERR_USE = 7,        /* a call at the wrong time or of the wrong thread */
    WARREN_IMAGE_ERR_BUSY = 8        /* threads of the image still run */
};

/* How much a finding of warren_image_check matters. */
enum {
    WARREN_IMAGE_REFUSED = 0, /* the program can't run as an image */
    WARREN_IMAGE_CHANGES = 1, /* it can, but something means something else */
    WARREN_IMAGE_REMARK = 2
};

/* Hears of one finding: the file (the program or a library of it), a sentence about it, and what to
   do about it ("" when there is nothing to be done). The strings are the callee's for the call
   only. */
typedef void warren_image_finding(void* context, int weight, const char* file, const char* what,
                                  const char* mend);

/* Examines the program or library at `path` and all libraries that it needs, without loading any,
   and calls `finding` for each thing that stands in the way of private copies, changes what the
   program means, or is good to know; the worst come first.
   Returns SUCCESS when the program can run as an image, else the reason for which loading it would
   fail. Any thread may call it at any time. */
int warren_image_check(const char* path, warren_image_finding* finding, void* context);

#ifdef __cplusplus
}
#endif

#endif
