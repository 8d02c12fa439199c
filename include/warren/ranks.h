/* Several ranks in one process: threads of one program that are MPI processes each.

   A program that is started with `mpiexec --ranks-per-process T` has T ranks in each of its
   processes. It makes T threads, as it likes; thread t calls warren_rank_bind(t) and then MPI_Init,
   and is an MPI process of its own from then on, with its own MPI_COMM_WORLD rank, requests,
   communicators and MPI_Finalize, while its variables are the program's, shared by all threads.
   Ranks 0 to T-1 of the job are threads 0 to T-1 of the first process, and so on. Handles and
   requests belong to the rank that made them. Rank r of the job is thread r mod T of process r / T.

   Such programs link with -lwarren beside the MPI library. Started alone they are one rank, T is 1.

   Thread rule: any thread at any time. A thread is bound once, for life; several threads may be
   bound to one rank, which is then what MPI calls a process with several threads
   (MPI_THREAD_MULTIPLE). Threads that are bound to no rank must not call MPI: MPI_Init
   fails in them and says so. */
#ifndef WARREN_RANKS_H
#define WARREN_RANKS_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WARREN_RANK_SUCCESS = 0,
    WARREN_RANK_ERR_ARG = 1, /* no rank of this process has this number */
    WARREN_RANK_ERR_USE = 2, /* the calling thread is bound to another rank */
    WARREN_RANK_ERR_JOB = 3  /* the process was started with settings that make no sense */
};

/* How many ranks the process has: T, 1 when it was started without --ranks-per-process; 0 with
   ERR_JOB. */
int warren_rank_count(void);

/* Makes the calling thread one of rank `number`, 0 to T-1, of this process. Doing the same again
   changes nothing. Returns SUCCESS or one of the errors above. */
int warren_rank_bind(int number);

/* A hint: the calling rank has done a step of its work, and may go on on another processor of its
   process. With `mpiexec --ranks fibres --balance …` the load of a rank is what it ran from one of
   its calls to the next, and when all ranks have called, the last call balances; a call may return
   elsewhere than it began. It waits for nobody and may be called by some ranks only, which then
   balances nothing. Everywhere else it does nothing. Call it before the step's collective operation
   rather than after it: who then waits there is woken where it is to go on. Returns SUCCESS, or
   ERR_JOB. Thread rule: by the rank's own thread; others' calls do nothing. */
int warren_rank_migrate(void);

/* What an error means, a sentence. */
const char* warren_rank_error(int error);

#ifdef __cplusplus
}
#endif

#endif
