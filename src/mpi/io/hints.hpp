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
    bool stages_reads = true;                        // romio_cb_read
    bool stages_writes = true;                       // romio_cb_write
    Sieving sieved_reads = Sieving::automatic;       // romio_ds_read
    Sieving sieved_writes = Sieving::automatic;      // romio_ds_write

    void take(const comm::Info& info);
    void report(comm::Info& info, int ranks) const;
};

} // namespace warren::io
