// Random views and accesses of two files, compared with a model: the bytes that each file has.
//
// All ranks draw the same random numbers, so each knows what all of them write. A tile of a view
// consists of units; each belongs to one rank, or to nobody and is a hole. After every write comes
// a barrier, so what is read is certain. --seed S --steps N.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include <mpi.h>

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
    Bytes model;
};

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
    expect(access_by(how, writing, file, own, memory, &status) == MPI_SUCCESS, "a write failed");
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    expect(count == own.bytes, "a write's count is wrong");
    for (int rank = 0; rank < ranks; ++rank) {
        const Part& part = parts[static_cast<std::size_t>(rank)];
        for (int i = 0; i < part.bytes; ++i) {
            const auto place = static_cast<std::size_t>(tiles.place(rank, part.first + i));
            if (place >= file.model.size()) {
                file.model.resize(place + 1);
            }
            file.model[place] = value(rank, part.first + i);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
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
    expect(access_by(how, reading, file, own, memory, &status) == MPI_SUCCESS, "a read failed");
    int expected = 0;
    while (expected < own.bytes) {
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
    expect(count == expected, "a read's count is wrong");
    MPI_Barrier(MPI_COMM_WORLD);
}

void other_step(File& file) {
    switch (draw(4)) {
    case 0: {
        const int bytes = draw(100000);
        MPI_File_set_size(file.handle, bytes);
        file.model.resize(static_cast<std::size_t>(bytes));
        break;
    }
    case 1:
        MPI_File_set_atomicity(file.handle, draw(2));
        break;
    case 2: { // ordered
        MPI_File_set_view(file.handle, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
        const int begin = draw(5000);
        MPI_File_seek_shared(file.handle, begin, MPI_SEEK_SET);
        std::size_t at = static_cast<std::size_t>(begin);
        for (int rank = 0; rank < ranks; ++rank) {
            const int bytes = draw(900);
            Bytes data;
            for (int i = 0; i < bytes; ++i) {
                data.push_back(value(rank, i));
            }
            file.model.resize(bytes > 0 ? std::max(file.model.size(), at + data.size())
                                        : file.model.size());
            std::copy(data.begin(), data.end(),
                      file.model.begin() + static_cast<std::ptrdiff_t>(bytes > 0 ? at : 0));
            at += data.size();
            if (rank == own_rank) {
                data.push_back(0);
                MPI_File_write_ordered(file.handle, data.data(), bytes, MPI_BYTE,
                                       MPI_STATUS_IGNORE);
            }
        }
        break;
    }
    default: {
        MPI_Offset bytes = -1;
        MPI_File_get_size(file.handle, &bytes);
        expect(bytes == static_cast<MPI_Offset>(file.model.size()), "the size is wrong");
    }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    unsigned seed = 1;
    int steps = 100;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--seed") == 0) {
            seed = static_cast<unsigned>(std::atoi(argv[i + 1]));
        } else if (std::strcmp(argv[i], "--steps") == 0) {
            steps = std::atoi(argv[i + 1]);
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
    for (File& file : files) {
        file.name = "io_random_" + std::to_string(number) + (&file == files ? "_a" : "_b");
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "cb_buffer_size", &file == files ? "8192" : "100000");
        expect(MPI_File_open(MPI_COMM_WORLD, file.name.c_str(),
                             MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info,
                             &file.handle) == MPI_SUCCESS,
               "open");
        MPI_Info_free(&info);
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
        MPI_File_close(&file.handle);
    }
    MPI_Finalize();
    return 0;
}
