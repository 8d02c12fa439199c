/* Private images: programs and libraries of which one process has many copies, each with its own
   variables, all sharing their code.

   An image is a private world: copies of a program or of libraries, with copies of all libraries
   that they need; only the C library and its kin are shared. Programs are what compilers make by
   default (position-independent executables, dynamically linked), unchanged.

   A program that has images is a host. It calls warren_image_host first, and is linked so:
       … -lwarren_image_host -lwarren -Wl,--export-dynamic-symbol=pthread_create
         -Wl,--export-dynamic-symbol=_dl_find_object
   (in this project with CMake: the targets warren and warren_image_host).

   Thread rule. A thread belongs to one image at most: from warren_image_enter to
   warren_image_leave, or, made by a thread of an image, all its life. Only threads of an image may
   run its code: its functions, its program, loading (constructors run). Different images are
   independent: any number of threads may work on any number of them at once.

   What images don't have of their own: signals and their handlers (the last sigaction counts for
   all), timers, limits, descriptors and the working directory unless options say so, memory and
   descriptors that they don't free and close.

   Functions return WARREN_IMAGE_SUCCESS or one of the errors below; warren_image_error has the
   sentence. Strings that are passed in are the caller's, and only looked at during the call, but
   for the arguments and the environment of a program, which must live as long as it runs. */
#ifndef WARREN_IMAGE_H
#define WARREN_IMAGE_H

#include <stddef.h>

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

typedef struct warren_image warren_image;
/* A library in an image. */
typedef struct warren_image_module warren_image_module;

/* A name and what it means to an image, in front of what its modules and libraries define. */
typedef struct {
    const char* name; /* null ends a list */
    void* address;
} warren_image_binding;

/* How a program ended. */
typedef struct {
    int status; /* 0 to 255, of exit or of main's return */
    int signal; /* 0, or SIGABRT for abort */
} warren_image_end;

typedef struct {
    size_t bytes;                /* sizeof(warren_image_options) */
    const char* const* shared;   /* names of libraries that this image shares with the process, as
                                    files need them ("libfoo.so.1"), ended by null; null: none but
                                    the C library and its kin */
    const char* const* separate; /* names that it has for itself although they are of that kin */
    const warren_image_binding* bindings; /* null: none */
    /* Called in the thread that ends the program. When that isn't the thread of warren_image_run,
       the thread then stays where it is, and warren_image_run doesn't return. May be null. */
    void (*ended)(void* context, const warren_image_end* end);
    void* context;
    /* Which descriptors the image's standard streams use; they stay the caller's. An input of -1:
       there is nothing to be read. 0, 1, 2 is usual; the process's output, 1, is written line by
       line, unless the image has descriptors of its own. */
    int input, output, error;
    unsigned flags;               /* of those below */
    const char* const* preloaded; /* libraries, by name or path, that the first program or library
                                     gets before those that it needs, ended by null; null: none */
} warren_image_options;

enum {
    /* The thread of warren_image_run, and those that the program makes, have a working directory
       and umask of their own, as the process's when it begins; the thread keeps them afterwards. */
    WARREN_IMAGE_OWN_DIRECTORY = 1,
    /* They have a table of descriptors of their own, with input, output and error as 0, 1 and 2,
       which commands that the program starts inherit. What others open later they don't see. */
    WARREN_IMAGE_OWN_DESCRIPTORS = 2
};

/* Prepares the process for images. Once, before anything else, while there is one thread. */
int warren_image_host(void);

/* The sentence that says why the calling thread's last call failed; valid until its next. */
const char* warren_image_error(void);

/* Makes an empty image. `options` may be null. */
int warren_image_create(const warren_image_options* options, warren_image** image);

/* The calling thread, which belongs to no image, belongs to this one from now on; its thread-local
   variables are the image's, newly initialised. */
int warren_image_enter(warren_image* image);
/* Runs the thread's destructors of thread-local objects; it belongs to no image from now on. */
int warren_image_leave(void);

/* Loads a library, with copies of all libraries that it needs, and runs their constructors. Each
   file is loaded once in an image: loading it again gives the same module. */
int warren_image_load(warren_image* image, const char* path, warren_image_module** module);
/* Ends one use of a library that was loaded. After the last one, destructors run and its memory is
   returned, and that of libraries that only it needed. */
int warren_image_unload(warren_image* image, warren_image_module* module);

/* The address of a function or variable of an image: of `module` and what it needs, or, when that
   is null, of any module or shared library in their order. A null version takes the default one.
   The address of a thread-local variable is the calling thread's. */
int warren_image_symbol(warren_image* image, warren_image_module* module, const char* name,
                        const char* version, void** address);

/* Loads a program into an empty image. Nothing of it runs yet. */
int warren_image_load_program(warren_image* image, const char* path);
/* Runs the program, once, from its entry point to its end, in the calling thread, which belongs to
   the image. `arguments` has `argument_count` strings and a null behind them, `environment` ends
   with null. Threads that the program has left running go on. */
int warren_image_run(warren_image* image, int argument_count, char** arguments, char** environment,
                     warren_image_end* end);

/* Ends an image: runs what has not been run of its destructors, in the calling thread, and returns
   all its memory. Memory that its code has allocated and not freed stays allocated. The caller is
   the last thread of the image, and belongs to none afterwards, or a thread that belongs to none.
   ERR_BUSY while other threads of the image run: nothing has happened then. */
int warren_image_destroy(warren_image* image);

/* The image that the calling thread belongs to, or null. */
warren_image* warren_image_current(void);
/* The image whose code or variables are at `address`, or null. Takes no lock: signal handlers may
   call it too. */
warren_image* warren_image_of(const void* address);

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
                                  const char* remedy);

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
