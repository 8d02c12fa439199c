// Hints: what an info object says about a file, by ROMIO's names (MPI 5.0, 14.2.8). Those that
// change what the library does are kept and reported; all others are ignored, and not reported.
// Thread rule: a value of its file. Invalid values are ignored.
#pragma once

#include <cstdint>

#include "mpi/comm/info.hpp"
#include "mpi/io/transfer.hpp"
#include "mpi/io/tuning.hpp"

namespace warren::io {

struct Hints {
    std::uint64_t staging_half = staging_half_bytes; // cb_buffer_size; fixed at the first use
    int writers = 0;                                 // cb_nodes; 0: as many as ranks
    Choice staged_reads = Choice::automatic;         // romio_cb_read
    Choice staged_writes = Choice::automatic;        // romio_cb_write
    Choice sieved_reads = Choice::automatic;         // romio_ds_read
    Choice sieved_writes = Choice::automatic;        // romio_ds_write
    std::uint64_t read_sieve = buffer_bytes;         // ind_rd_buffer_size
    std::uint64_t write_sieve = buffer_bytes;        // ind_wr_buffer_size
    bool only_collective = false; // romio_no_indep_rw: staging is used as if it were enabled

    void take(const comm::Info& info);
    // Takes hints of a file, as ROMIO_HINTS names one: lines of a key and a value; '#' begins a
    // comment; the first line of a key counts. A file that can't be read has none.
    void take_file(const char* path);
    void report(comm::Info& info, int ranks) const;
};

} // namespace warren::io
