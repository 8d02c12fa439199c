/* What a program may ask of faulty_files.c, by dlsym(), if that is preloaded. Threads: any, but
   faulty_files_fail() only where no call for a chosen file is under way. */
#ifndef FAULTY_FILES_H
#define FAULTY_FILES_H

#ifdef __cplusplus
extern "C" {
#endif

/* From now on one call in so many fails for good that concerns a file whose path has this part
   (kept by address) and that is opened after the first such request; 0: none fails. */
void faulty_files_fail(const char* part_of_path, unsigned one_in, unsigned seed);
/* How many calls of this process have failed so, and errno of the last. */
int faulty_files_failures(int* cause);

#ifdef __cplusplus
}
#endif

#endif
