// Random views and accesses of two files, compared with a model: the bytes that each file has.
//
// All ranks draw the same random numbers, so each knows what all of them write. A tile of a view
// consists of units; each belongs to one rank, or to nobody and is a hole. After every write comes
// a barrier, so what is read is certain. --seed S --steps N. With --failures N, one in N calls for
// these files fails (faulty_files.c, preloaded); the ranks that it concerns must hear of it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include <mpi.h>

#include "failures.hpp"

namespace {

using Bytes = std::vector<unsigned char>;

int own_rank;
int ranks;
int step;
std::mt19937 random_numbers;

int draw(int limit) {
    return static_cast<int>(random_numbers() % static_cast<unsigned>(limit));
}

[[noreturn]] void give_up(const std::string& what) {
    std::fprintf(stderr, "rank %d, step %d: %s\n", own_rank, step, what.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

void expect(bool holds, const char* what) {
    if (!holds) {
        give_up(what);
    }
}

struct File {
    MPI_File handle = MPI_FILE_NULL;
    std::string name;
    const char* staging_half;
    bool deletes = false; // on close
    Bytes model;
};

Failures failures;

// Whether this call has failed at each rank; gives up if it failed where it should not.
std::vector<char> judge(int code, Failures::Scope scope) {
    std::string complaint;
    std::vector<char> failed = failures.judge(code, scope, complaint);
    if (!complaint.empty()) {
        give_up(complaint);
    }
    return failed;
}

bool any(const std::vector<char>& failed) {
    return std::find(failed.begin(), failed.end(), true) != failed.end();
}

// The units of a tile, and whose they are; -1: a hole.
struct Tiles {
    int displacement;
    int unit;
    std::vector<int> owners;

    int bytes() const { return unit * static_cast<int>(owners.size()); }
    int bytes_of(int rank) const {
        return unit * static_cast<int>(std::count(owners.begin(), owners.end(), rank));
    }
    // Where a byte of a rank's data is in the file.
    long place(int rank, long byte) const {
        const long tile = byte / bytes_of(rank);
        long left = byte % bytes_of(rank);
        for (std::size_t i = 0; i < owners.size(); ++i) {
            if (owners[i] == rank) {
                if (left < unit) {
                    return displacement + tile * bytes() + static_cast<long>(i) * unit + left;
                }
                left -= unit;
            }
        }
        std::abort();
    }
};

Tiles draw_tiles() {
    constexpr int units[] = {1, 2, 4, 7, 64, 500, 5000};
    Tiles tiles;
    tiles.displacement = draw(3000);
    tiles.unit = units[draw(7)];
    tiles.owners.resize(static_cast<std::size_t>(ranks + draw(2 * ranks + 3)));
    const bool holes = draw(2) == 0;
    for (std::size_t i = 0; i < tiles.owners.size(); ++i) {
        const bool first = i < static_cast<std::size_t>(ranks); // each has one at least
        tiles.owners[i] = first ? static_cast<int>(i) : holes && draw(3) == 0 ? -1 : draw(ranks);
    }
    std::shuffle(tiles.owners.begin(), tiles.owners.end(), random_numbers);
    return tiles;
}

void set_view(const File& file, const Tiles& tiles) {
    std::vector<int> places;
    for (std::size_t i = 0; i < tiles.owners.size(); ++i) {
        if (tiles.owners[i] == own_rank) {
            places.push_back(static_cast<int>(i) * tiles.unit);
        }
    }
    MPI_Datatype blocks;
    MPI_Datatype tile;
    MPI_Type_create_indexed_block(static_cast<int>(places.size()), tiles.unit, places.data(),
                                  MPI_BYTE, &blocks);
    MPI_Type_create_resized(blocks, 0, tiles.bytes(), &tile);
    MPI_Type_commit(&tile);
    expect(MPI_File_set_view(file.handle, tiles.displacement, MPI_BYTE, tile, "native",
                             MPI_INFO_NULL) == MPI_SUCCESS,
           "set_view");
    MPI_Type_free(&blocks);
    MPI_Type_free(&tile);
}

// What a rank accesses: bytes [first, first + bytes) of its data.
struct Part {
    long first;
    int bytes;
};

enum class How { at, at_all, pointer, all, nonblocking, nonblocking_all, split, how_many };

Failures::Scope scope_of(How how) {
    return how == How::at_all || how == How::all || how == How::split ? Failures::Scope::collective
                                                                      : Failures::Scope::one_rank;
}

unsigned char value(int rank, long byte) {
    return static_cast<unsigned char>((byte * 2654435761U + static_cast<unsigned>(rank) * 977U +
                                       static_cast<unsigned>(step) * 40503U) >>
                                      7);
}

// Memory with or without gaps: pairs of bytes, three apart.
struct Memory {
    bool gaps;
    MPI_Datatype type;
    Bytes bytes;

    Memory(bool with_gaps, int count)
        : gaps(with_gaps), bytes(static_cast<std::size_t>(count) * 3 + 8) {
        type = MPI_BYTE;
        if (gaps) {
            MPI_Type_create_resized(MPI_BYTE, 0, 3, &type);
            MPI_Type_commit(&type);
        }
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
        if (gaps) {
            MPI_Type_free(&type);
        }
    }
    unsigned char& at(long i) { return bytes[static_cast<std::size_t>(gaps ? 3 * i : i)]; }
};

// The procedures that read, or write. `Data`: void* or const void*.
template <typename Data>
struct Procedures {
    using At = int (*)(MPI_File, MPI_Offset, Data, int, MPI_Datatype, MPI_Status*);
    using ByPointer = int (*)(MPI_File, Data, int, MPI_Datatype, MPI_Status*);
    using Begin = int (*)(MPI_File, MPI_Offset, Data, int, MPI_Datatype, MPI_Request*);
    At at;
    At at_all;
    ByPointer by_pointer;
    ByPointer all;
    Begin begin;
    Begin begin_all;
    int (*begin_split)(MPI_File, MPI_Offset, Data, int, MPI_Datatype);
    int (*end_split)(MPI_File, Data, MPI_Status*);
};
constexpr Procedures<const void*> writing{
    MPI_File_write_at,           MPI_File_write_at_all,    MPI_File_write,
    MPI_File_write_all,          MPI_File_iwrite_at,       MPI_File_iwrite_at_all,
    MPI_File_write_at_all_begin, MPI_File_write_at_all_end};
constexpr Procedures<void*> reading{
    MPI_File_read_at,           MPI_File_read_at_all,    MPI_File_read,
    MPI_File_read_all,          MPI_File_iread_at,       MPI_File_iread_at_all,
    MPI_File_read_at_all_begin, MPI_File_read_at_all_end};

template <typename Data>
int access_by(How how, const Procedures<Data>& procedures, const File& file, const Part& part,
              Memory& memory, MPI_Status* status) {
    const MPI_File handle = file.handle;
    Data data = memory.bytes.data();
    MPI_Request request;
    int code = MPI_SUCCESS;
    switch (how) {
    case How::at:
    case How::at_all: {
        const auto access = how == How::at ? procedures.at : procedures.at_all;
        return access(handle, part.first, data, part.bytes, memory.type, status);
    }
    case How::pointer:
    case How::all: {
        MPI_File_seek(handle, part.first, MPI_SEEK_SET);
        const auto access = how == How::pointer ? procedures.by_pointer : procedures.all;
        return access(handle, data, part.bytes, memory.type, status);
    }
    case How::nonblocking:
    case How::nonblocking_all: {
        const auto begin = how == How::nonblocking ? procedures.begin : procedures.begin_all;
        code = begin(handle, part.first, data, part.bytes, memory.type, &request);
        return code != MPI_SUCCESS ? code : MPI_Wait(&request, status);
    }
    default:
        code = procedures.begin_split(handle, part.first, data, part.bytes, memory.type);
        return code != MPI_SUCCESS ? code : procedures.end_split(handle, data, status);
    }
}

std::vector<Part> draw_parts(const Tiles& tiles) {
    std::vector<Part> parts;
    const int most = draw(4) == 0 ? 60000 : 3000;
    for (int rank = 0; rank < ranks; ++rank) {
        const int tile = tiles.bytes_of(rank);
        parts.push_back({draw(3 * tile), draw(5) == 0 ? 0 : draw(most) + 1});
    }
    return parts;
}

// After a write that has failed at some ranks: each byte that they wanted to write is as before or
// as they wanted it, and all others are certain.
void adopt(File& file, const Bytes& certain, const Bytes& possible) {
    Bytes actual;
    std::FILE* stream = std::fopen(file.name.c_str(), "rb");
    expect(stream != nullptr, "the file can't be opened");
    actual.resize(possible.size() + 1);
    actual.resize(std::fread(actual.data(), 1, actual.size(), stream));
    std::fclose(stream);
    expect(actual.size() >= certain.size() && actual.size() <= possible.size(),
           "after a failed write, the file has a wrong size");
    for (std::size_t i = 0; i < actual.size(); ++i) {
        const unsigned char before = i < certain.size() ? certain[i] : 0;
        if (actual[i] != before && actual[i] != possible[i]) {
            give_up("after a failed write, byte " + std::to_string(i) + " of " + file.name +
                    " is " + std::to_string(actual[i]) + ", not " + std::to_string(before) +
                    " or " + std::to_string(possible[i]));
        }
    }
    file.model = actual;
}

// `put(model, rank)`: writes what that rank has written.
template <typename Put>
void settle(File& file, const std::vector<char>& failed, Put put) {
    for (int rank = 0; rank < ranks; ++rank) {
        if (!failed[static_cast<std::size_t>(rank)]) {
            put(file.model, rank);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!any(failed)) {
        return;
    }
    Bytes possible = file.model;
    for (int rank = 0; rank < ranks; ++rank) {
        if (failed[static_cast<std::size_t>(rank)]) {
            put(possible, rank);
        }
    }
    adopt(file, Bytes(file.model), possible);
    MPI_Barrier(MPI_COMM_WORLD);
}

void write_step(File& file) {
    const Tiles tiles = draw_tiles();
    const std::vector<Part> parts = draw_parts(tiles);
    const auto how = static_cast<How>(draw(static_cast<int>(How::how_many)));
    const bool gaps = draw(3) == 0;
    set_view(file, tiles);
    const Part& own = parts[static_cast<std::size_t>(own_rank)];
    Memory memory(gaps, own.bytes);
    for (int i = 0; i < own.bytes; ++i) {
        memory.at(i) = value(own_rank, own.first + i);
    }
    MPI_Status status;
    const int code = access_by(how, writing, file, own, memory, &status);
    const std::vector<char> failed = judge(code, scope_of(how));
    if (code == MPI_SUCCESS) {
        int count = -1;
        MPI_Get_count(&status, MPI_BYTE, &count);
        expect(count == own.bytes, "a write's count is wrong");
    }
    settle(file, failed, [&](Bytes& model, int rank) {
        const Part& part = parts[static_cast<std::size_t>(rank)];
        for (int i = 0; i < part.bytes; ++i) {
            const auto place = static_cast<std::size_t>(tiles.place(rank, part.first + i));
            if (place >= model.size()) {
                model.resize(place + 1);
            }
            model[place] = value(rank, part.first + i);
        }
    });
}

void read_step(File& file) {
    const Tiles tiles = draw_tiles();
    const std::vector<Part> parts = draw_parts(tiles);
    const auto how = static_cast<How>(draw(static_cast<int>(How::how_many)));
    const bool gaps = draw(3) == 0;
    set_view(file, tiles);
    const Part& own = parts[static_cast<std::size_t>(own_rank)];
    Memory memory(gaps, own.bytes);
    MPI_Status status;
    const int code = access_by(how, reading, file, own, memory, &status);
    judge(code, scope_of(how));
    int expected = 0;
    while (code == MPI_SUCCESS && expected < own.bytes) {
        const auto place = static_cast<std::size_t>(tiles.place(own_rank, own.first + expected));
        if (place >= file.model.size()) {
            break;
        }
        if (memory.at(expected) != file.model[place]) {
            give_up("byte " + std::to_string(place) + " of " + file.name + " is " +
                    std::to_string(memory.at(expected)) + ", not " +
                    std::to_string(file.model[place]) + ", by way " +
                    std::to_string(static_cast<int>(how)));
        }
        ++expected;
    }
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    expect(code != MPI_SUCCESS || count == expected, "a read's count is wrong");
    MPI_Barrier(MPI_COMM_WORLD);
}

void ordered_step(File& file) {
    MPI_File_set_view(file.handle, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    const int begin = draw(5000);
    MPI_File_seek_shared(file.handle, begin, MPI_SEEK_SET);
    std::vector<Bytes> data(static_cast<std::size_t>(ranks));
    std::vector<std::size_t> places;
    std::size_t at = static_cast<std::size_t>(begin);
    for (int rank = 0; rank < ranks; ++rank) {
        const int bytes = draw(900);
        for (int i = 0; i < bytes; ++i) {
            data[static_cast<std::size_t>(rank)].push_back(value(rank, i));
        }
        places.push_back(at);
        at += static_cast<std::size_t>(bytes);
    }
    const Bytes& own = data[static_cast<std::size_t>(own_rank)];
    const int code = MPI_File_write_ordered(file.handle, own.data(), static_cast<int>(own.size()),
                                            MPI_BYTE, MPI_STATUS_IGNORE);
    settle(file, judge(code, Failures::Scope::collective), [&](Bytes& model, int rank) {
        const Bytes& its = data[static_cast<std::size_t>(rank)];
        const std::size_t place = places[static_cast<std::size_t>(rank)];
        if (!its.empty()) {
            model.resize(std::max(model.size(), place + its.size()));
            std::copy(its.begin(), its.end(), model.begin() + static_cast<std::ptrdiff_t>(place));
        }
    });
}

// Opens until it can be done.
void open_file(File& file) {
    file.deletes = draw(2) == 0;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", file.staging_half);
    bool failed = true;
    while (failed) {
        const int code = MPI_File_open(MPI_COMM_WORLD, file.name.c_str(),
                                       MPI_MODE_CREATE | MPI_MODE_RDWR |
                                           (file.deletes ? MPI_MODE_DELETE_ON_CLOSE : 0),
                                       info, &file.handle);
        failed = any(judge(code, Failures::Scope::all));
        expect(!failed || file.handle == MPI_FILE_NULL, "a failed open leaves a handle");
    }
    MPI_Info_free(&info);
}

// A file that could not be deleted is still open, and closed without being deleted.
void close_file(File& file) {
    const bool failed = any(judge(MPI_File_close(&file.handle), Failures::Scope::all));
    expect(!failed || file.deletes, "a close failed");
    if (failed) {
        expect(MPI_File_close(&file.handle) == MPI_SUCCESS, "the second close failed");
    }
    if (file.deletes && !failed) {
        expect(access(file.name.c_str(), F_OK) != 0, "a file has not been deleted on close");
        file.model.clear();
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// The first rank deletes the file if it is still there, until that succeeds.
void delete_file(const File& file) {
    bool failed = true;
    while (failed) {
        const bool is_there = own_rank == 0 && access(file.name.c_str(), F_OK) == 0;
        const int code = is_there ? MPI_File_delete(file.name.c_str(), MPI_INFO_NULL) : MPI_SUCCESS;
        failed = any(judge(code, Failures::Scope::one_rank));
    }
}

// Sets the size, or makes sure that the file has so many bytes.
void size_step(File& file, bool sets) {
    const int bytes = draw(100000);
    const int code =
        sets ? MPI_File_set_size(file.handle, bytes) : MPI_File_preallocate(file.handle, bytes);
    if (!any(judge(code, Failures::Scope::all))) {
        const auto size = static_cast<std::size_t>(bytes);
        file.model.resize(sets ? size : std::max(file.model.size(), size));
    }
}

void other_step(File& file) {
    switch (draw(7)) {
    case 0:
    case 1:
        size_step(file, draw(2) == 0);
        break;
    case 2:
        MPI_File_set_atomicity(file.handle, draw(2));
        break;
    case 3:
        ordered_step(file);
        break;
    case 4:
        judge(MPI_File_sync(file.handle), Failures::Scope::all);
        break;
    case 5:
        close_file(file);
        open_file(file);
        break;
    default: {
        MPI_Offset bytes = -1;
        MPI_File_get_size(file.handle, &bytes);
        expect(bytes == static_cast<MPI_Offset>(file.model.size()), "the size is wrong");
    }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int open_descriptors() {
    int count = 0;
    for (int descriptor = 0; descriptor < 1024; ++descriptor) {
        count += fcntl(descriptor, F_GETFD) >= 0 ? 1 : 0;
    }
    return count;
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    unsigned seed = 1;
    int steps = 100;
    unsigned one_fails_in = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--seed") == 0) {
            seed = static_cast<unsigned>(std::atoi(argv[i + 1]));
        } else if (std::strcmp(argv[i], "--steps") == 0) {
            steps = std::atoi(argv[i + 1]);
        } else if (std::strcmp(argv[i], "--failures") == 0) {
            one_fails_in = static_cast<unsigned>(std::atoi(argv[i + 1]));
        }
    }
    // Every rank models what all write: the work of a step grows with the square of the ranks.
    constexpr int many = 9;
    if (ranks > many) {
        steps = std::max(10, steps * (many * many) / (ranks * ranks));
    }
    random_numbers.seed(seed);
    int number = static_cast<int>(getpid());
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    File files[2];
    if (one_fails_in != 0) {
        expect(failures.begin("io_random_", one_fails_in, seed + static_cast<unsigned>(own_rank)),
               "--failures needs faulty_files");
    }
    const int descriptors = open_descriptors();
    for (File& file : files) {
        file.name = "io_random_" + std::to_string(number) + (&file == files ? "_a" : "_b");
        file.staging_half = &file == files ? "8192" : "100000";
        open_file(file);
    }
    for (step = 0; step < steps; ++step) {
        File& file = files[draw(2)];
        const int kind = draw(8);
        if (kind < 4) {
            write_step(file);
        } else if (kind < 7) {
            read_step(file);
        } else {
            other_step(file);
        }
    }
    for (File& file : files) {
        close_file(file);
        delete_file(file);
    }
    // (Without failures, other ranks may be in this process.)
    expect(one_fails_in == 0 || open_descriptors() == descriptors, "a descriptor is left open");
    if (own_rank == 0 && one_fails_in != 0) {
        std::printf("%d calls failed at rank 0\n", failures.how_many());
    }
    MPI_Finalize();
    return 0;
}
