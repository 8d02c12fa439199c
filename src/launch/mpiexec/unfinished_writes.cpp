#include "launch/mpiexec/unfinished_writes.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <numeric>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/mpiexec/tuning.hpp"
#include "mpi/job/write_log.hpp"

namespace warren::launch {

namespace {

using node::WriteEntry;
using node::WrittenPiece;

struct Piece {
    std::uint64_t offset;
    std::span<const std::byte> data;
};

// A checked entry. It refers to the bytes that it was read from.
struct LoggedFile {
    const char* path = nullptr;
    std::uint64_t device = 0;
    std::uint64_t number = 0;
    bool locks_system = false;
    std::vector<Piece> pieces;

    std::uint64_t begin() const {
        return std::min_element(
                   pieces.begin(), pieces.end(),
                   [](const Piece& one, const Piece& other) { return one.offset < other.offset; })
            ->offset;
    }
    std::uint64_t end() const {
        std::uint64_t last = 0;
        for (const Piece& piece : pieces) {
            last = std::max(last, piece.offset + piece.data.size());
        }
        return last;
    }
};

template <typename T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

std::uint64_t mark_of(const std::byte* entry) {
    return load<std::uint64_t>(entry + offsetof(WriteEntry, mark));
}

// Offsets and lengths of files are positive numbers of 63 bits.
constexpr std::uint64_t largest_offset = INT64_MAX;

// False: the entry contradicts itself.
bool parse_pieces(std::span<const std::byte> pieces, std::vector<Piece>& parsed) {
    while (!pieces.empty()) {
        if (pieces.size() < sizeof(WrittenPiece)) {
            return false;
        }
        const auto piece = load<WrittenPiece>(pieces.data());
        if (piece.bytes == 0 || piece.bytes > node::logged_data_bytes ||
            node::logged_bytes(piece.bytes) > pieces.size() ||
            piece.offset > largest_offset - piece.bytes) {
            return false;
        }
        parsed.push_back({piece.offset, pieces.subspan(sizeof piece, piece.bytes)});
        pieces = pieces.subspan(node::logged_bytes(piece.bytes));
    }
    return !parsed.empty();
}

bool parse(std::span<const std::byte> entry, LoggedFile& file) {
    const std::byte* head = entry.data();
    const auto path_bytes = load<std::uint32_t>(head + offsetof(WriteEntry, path_bytes));
    const auto pieces_bytes = load<std::uint64_t>(head + offsetof(WriteEntry, pieces_bytes));
    file.path = reinterpret_cast<const char*>(head + sizeof(WriteEntry));
    if (path_bytes < 2 || path_bytes > node::logged_path_bytes ||
        std::memchr(file.path, 0, path_bytes) != file.path + path_bytes - 1 ||
        file.path[0] != '/' || pieces_bytes > node::logged_pieces_bytes) {
        return false;
    }
    file.device = load<std::uint64_t>(head + offsetof(WriteEntry, device));
    file.number = load<std::uint64_t>(head + offsetof(WriteEntry, number));
    file.locks_system = load<std::uint32_t>(head + offsetof(WriteEntry, locks_system)) != 0;
    return parse_pieces(entry.subspan(page_bytes, pieces_bytes), file.pieces);
}

// Ranks of other nodes, and other programs, may hold the lock for as long as their access takes.
bool lock_file(int descriptor, const LoggedFile& file) {
    struct flock range = {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(file.begin());
    range.l_len = static_cast<off_t>(file.end() - file.begin());
    for (int trial = 0; trial < lock_trials; ++trial) {
        if (fcntl(descriptor, F_OFD_SETLK, &range) == 0) {
            return true;
        }
        if (errno != EAGAIN && errno != EACCES) {
            return false;
        }
        poll(nullptr, 0, 1);
    }
    return false;
}

// Whether the file begins to differ where the write would have begun: it has not, or somebody has
// written there since, whose data are newer.
bool has_other_begin(int descriptor, const LoggedFile& file) {
    const Piece& first = file.pieces.front();
    std::byte byte{};
    return pread(descriptor, &byte, 1, static_cast<off_t>(first.offset)) != 1 ||
           byte != first.data.front();
}

// The errno, or 0.
int write_piece(int descriptor, const Piece& piece, std::uint64_t limit) {
    // (Beyond the limit of file sizes the kernel would end this process.)
    if (piece.offset > limit || piece.data.size() > limit - piece.offset) {
        return EFBIG;
    }
    for (std::size_t done = 0; done < piece.data.size();) {
        const ssize_t now = pwrite(descriptor, piece.data.data() + done, piece.data.size() - done,
                                   static_cast<off_t>(piece.offset + done));
        if (now > 0) {
            done += static_cast<std::size_t>(now);
        } else if (now == 0 || errno != EINTR) {
            return now == 0 ? EIO : errno;
        }
    }
    return 0;
}

// The problem; empty: none.
std::string write_again(const LoggedFile& file) {
    // Without waiting for whoever has a lease on the file, or for a pipe that has its place.
    const int descriptor = open(file.path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0) {
        return std::strerror(errno);
    }
    struct stat status;
    std::string problem;
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_dev != file.device || status.st_ino != file.number) {
        problem = "another file has its name";
    } else {
        rlimit limit;
        const bool limited =
            getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
        if (file.locks_system && !lock_file(descriptor, file)) {
            problem = "somebody else has locked its bytes";
        } else if (!has_other_begin(descriptor, file)) {
            for (const Piece& piece : file.pieces) {
                const int its =
                    write_piece(descriptor, piece, limited ? limit.rlim_cur : INT64_MAX);
                if (its != 0 && problem.empty()) {
                    problem = std::strerror(its);
                }
            }
        }
    }
    close(descriptor);
    return problem;
}

// (Copied by the system, because parts without memory must not get any.)
bool copy_entry(const node::Segment& segment, const std::byte* entry, std::span<std::byte> to) {
    const std::ptrdiff_t place = entry - segment.at(0);
    return pread(segment.descriptor(), to.data(), to.size(), static_cast<off_t>(place)) ==
               static_cast<ssize_t>(to.size()) &&
           mark_of(to.data()) == node::valid_write;
}

void finish_write(const node::Segment& segment, std::uint32_t rank, std::byte* entry,
                  std::vector<std::byte>& memory, const std::function<JobUsers()>& users,
                  std::vector<UnfinishedWrite>& unfinished) {
    memory.resize(node::write_entry_bytes);
    if (!copy_entry(segment, entry, std::span(memory).first(sizeof(WriteEntry))) ||
        !copy_entry(segment, entry, memory)) {
        return;
    }
    LoggedFile file;
    if (!parse(memory, file)) {
        unfinished.push_back({rank, "", "the program has written over the rank's entry"});
    } else if (users() == JobUsers::others_too) {
        unfinished.push_back({rank, file.path, "a process of the job had another user"});
    } else if (const std::string problem = write_again(file); !problem.empty()) {
        unfinished.push_back({rank, file.path, problem});
    }
    // Others may write there from now on, so it must not be done again.
    // (By a store, because calls of the system are subject to the limit of file sizes.)
    reinterpret_cast<WriteEntry*>(entry)->mark.store(0, std::memory_order_release);
}

} // namespace

std::vector<UnfinishedWrite> finish_writes(const node::Segment& segment,
                                           std::span<const std::uint32_t> ranks,
                                           const std::function<JobUsers()>& users) {
    std::vector<UnfinishedWrite> unfinished;
    std::vector<std::byte> memory;
    for (const std::uint32_t rank : ranks) {
        if (segment.slot(rank).logs_writes.load(std::memory_order_acquire) == 0) {
            continue;
        }
        for (std::uint32_t entry = 0; entry < node::entries_per_rank; ++entry) {
            finish_write(segment, rank,
                         segment.unit(node::write_entries, node::write_entry_unit(rank, entry)),
                         memory, users, unfinished);
        }
    }
    return unfinished;
}

std::vector<UnfinishedWrite> finish_writes(const node::Segment& segment,
                                           const std::function<JobUsers()>& users) {
    std::vector<std::uint32_t> all(segment.ranks());
    std::iota(all.begin(), all.end(), 0);
    return finish_writes(segment, all, users);
}

std::string describe(const UnfinishedWrite& write, const std::string& who) {
    return "the last write of " + who + (write.path.empty() ? "" : " to " + write.path) +
           " may be there in part only: " + write.problem;
}

} // namespace warren::launch
