// Random filetypes in a data representation with other sizes, against a model: where each element
// is in the file, what is refused, and what comes back. --seed S --types N.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include <mpi.h>

namespace {

int own_rank;
unsigned seed = 1;
int number; // of the type
std::mt19937 random_numbers;

int draw(int low, int high) {
    return low + static_cast<int>(random_numbers() % static_cast<unsigned>(high - low + 1));
}

void expect(bool holds, const char* what) {
    if (!holds) {
        std::fprintf(stderr, "rank %d, seed %u, type %d: %s\n", own_rank, seed, number, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
        std::abort();
    }
}

// Where a type has its ints, if an int has `unit` bytes.
struct Map {
    std::vector<long> places;
    long lower = 0;
    long extent = 0;
};
using Layout = std::function<Map(long unit)>;

struct Made {
    MPI_Datatype type;
    Layout layout;
};

// Copies of a map at places; bounds from the lowest to the highest.
Map copies(const Map& old, const std::vector<long>& at) {
    Map map;
    for (std::size_t i = 0; i < at.size(); ++i) {
        for (const long place : old.places) {
            map.places.push_back(at[i] + place);
        }
        const long lower = at[i] + old.lower;
        const long upper = lower + old.extent;
        const long upper_before = map.lower + map.extent;
        map.lower = i == 0 ? lower : std::min(map.lower, lower);
        map.extent = (i == 0 ? upper : std::max(upper, upper_before)) - map.lower;
    }
    return map;
}

Made of_blocks(const Made& old, bool in_bytes) {
    const int count = draw(1, 4);
    std::vector<int> lengths;
    std::vector<int> places;
    std::vector<MPI_Aint> addresses;
    int at = draw(0, 3);
    for (int i = 0; i < count; ++i) {
        lengths.push_back(draw(1, 3));
        places.push_back(at);
        addresses.push_back(at);
        at += in_bytes ? draw(30, 200) : lengths.back() + draw(0, 3);
    }
    Made made;
    if (in_bytes) {
        MPI_Type_create_hindexed(count, lengths.data(), addresses.data(), old.type, &made.type);
    } else {
        MPI_Type_indexed(count, lengths.data(), places.data(), old.type, &made.type);
    }
    made.layout = [=](long unit) {
        const Map map = old.layout(unit);
        std::vector<long> all;
        for (std::size_t i = 0; i < lengths.size(); ++i) {
            for (int j = 0; j < lengths[i]; ++j) {
                all.push_back((in_bytes ? places[i] : places[i] * map.extent) + j * map.extent);
            }
        }
        return copies(map, all);
    };
    return made;
}

Made of_vector(const Made& old, bool in_bytes) {
    const int count = draw(1, 4);
    const int length = draw(1, 3);
    const int stride = in_bytes ? draw(20, 300) : length + draw(0, 3);
    Made made;
    if (in_bytes) {
        MPI_Type_create_hvector(count, length, stride, old.type, &made.type);
    } else {
        MPI_Type_vector(count, length, stride, old.type, &made.type);
    }
    made.layout = [=](long unit) {
        const Map map = old.layout(unit);
        std::vector<long> all;
        for (int i = 0; i < count; ++i) {
            for (int j = 0; j < length; ++j) {
                all.push_back(i * stride * (in_bytes ? 1 : map.extent) + j * map.extent);
            }
        }
        return copies(map, all);
    };
    return made;
}

Made resized(const Made& old) {
    const int extent = draw(1, 400);
    Made made;
    MPI_Type_create_resized(old.type, 0, extent, &made.type);
    made.layout = [=](long unit) {
        Map map = old.layout(unit);
        map.lower = 0;
        map.extent = extent;
        return map;
    };
    return made;
}

Made subarray(const Made& old) {
    const int sizes[2] = {draw(1, 4), draw(1, 4)};
    const int parts[2] = {draw(1, sizes[0]), draw(1, sizes[1])};
    const int starts[2] = {draw(0, sizes[0] - parts[0]), draw(0, sizes[1] - parts[1])};
    Made made;
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, old.type, &made.type);
    const int first = starts[0] * sizes[1] + starts[1];
    const int row = sizes[1];
    const int all_elements = sizes[0] * sizes[1];
    const int rows = parts[0];
    const int columns = parts[1];
    made.layout = [=](long unit) {
        const Map map = old.layout(unit);
        std::vector<long> all;
        for (int i = 0; i < rows * columns; ++i) {
            all.push_back((first + i / columns * row + i % columns) * map.extent);
        }
        Map copied = copies(map, all);
        copied.lower = 0;
        copied.extent = all_elements * map.extent;
        return copied;
    };
    return made;
}

Made make(int depth) {
    Made made;
    if (depth == 0) {
        MPI_Type_dup(MPI_INT, &made.type);
        made.layout = [](long unit) { return Map{{0}, 0, unit}; };
        return made;
    }
    Made old = make(depth - 1);
    switch (draw(0, 5)) {
    case 0:
        made = of_vector(old, false);
        break;
    case 1:
        made = of_vector(old, true);
        break;
    case 2:
        made = of_blocks(old, false);
        break;
    case 3:
        made = of_blocks(old, true);
        break;
    case 4:
        made = resized(old);
        break;
    default:
        made = subarray(old);
    }
    MPI_Type_free(&old.type);
    return made;
}

bool is_legal(const Map& map, long unit) {
    for (std::size_t i = 1; i < map.places.size(); ++i) {
        if (map.places[i] < map.places[i - 1] + unit) {
            return false;
        }
    }
    return map.extent > 0;
}

// --- A representation: an int is its bytes, and others behind them.

long file_unit;

int extent_in_file(MPI_Datatype, MPI_Aint* extent, void*) {
    int flag = 0;
    MPI_Initialized(&flag); // functions of the program may call MPI
    *extent = flag != 0 ? file_unit : -1;
    return MPI_SUCCESS;
}

int to_file(void* memory, MPI_Datatype, int count, void* file, MPI_Offset, void*) {
    for (int i = 0; i < count; ++i) {
        char* at = static_cast<char*>(file) + i * file_unit;
        std::memset(at, 'x', static_cast<std::size_t>(file_unit));
        std::memcpy(at, static_cast<int*>(memory) + i, sizeof(int));
    }
    return MPI_SUCCESS;
}

int from_file(void* memory, MPI_Datatype, int count, void* file, MPI_Offset, void*) {
    for (int i = 0; i < count; ++i) {
        std::memcpy(static_cast<int*>(memory) + i, static_cast<char*>(file) + i * file_unit,
                    sizeof(int));
    }
    return MPI_SUCCESS;
}

void try_type(MPI_File file, const char* representation, int descriptor) {
    Made made = make(draw(1, 3));
    MPI_Type_commit(&made.type);
    const Map memory = made.layout(sizeof(int));
    const Map map = made.layout(file_unit);
    const int code = MPI_File_set_view(file, 0, MPI_INT, made.type, representation, MPI_INFO_NULL);
    expect((code == MPI_SUCCESS) == (is_legal(memory, sizeof(int)) && is_legal(map, file_unit)),
           code == MPI_SUCCESS ? "a view was made" : "a view was refused");
    if (code == MPI_SUCCESS) {
        const auto elements = map.places.size();
        std::vector<int> values(2 * elements);
        std::vector<int> back(2 * elements);
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = draw(0, 1 << 30);
            MPI_Offset place = -1;
            MPI_File_get_byte_offset(file, static_cast<MPI_Offset>(i), &place);
            const long tile = static_cast<long>(i / elements);
            expect(place == tile * map.extent + map.places[i % elements], "a byte offset is wrong");
        }
        // Tiles that overlap each other keep what was written last.
        const int count = static_cast<int>(
            map.extent >= map.places.back() + file_unit ? values.size() : elements);
        const auto bytes = static_cast<std::size_t>(count) * sizeof(int);
        expect(MPI_File_write_at(file, 0, values.data(), count, MPI_INT, MPI_STATUS_IGNORE) ==
                   MPI_SUCCESS,
               "write");
        expect(MPI_File_read_at_all(file, 0, back.data(), count, MPI_INT, MPI_STATUS_IGNORE) ==
                   MPI_SUCCESS,
               "read");
        expect(std::memcmp(values.data(), back.data(), bytes) == 0, "other ints were read");
        int raw = 0;
        expect(pread(descriptor, &raw, sizeof raw, map.places.back()) == sizeof raw &&
                   raw == values[elements - 1],
               "the file has another int");
    }
    MPI_Type_free(&made.type);
}

} // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    int types = 300;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--seed") == 0) {
            seed = static_cast<unsigned>(std::atoi(argv[i + 1]));
        } else if (std::strcmp(argv[i], "--types") == 0) {
            types = std::atoi(argv[i + 1]);
        }
    }
    random_numbers.seed(seed + static_cast<unsigned>(own_rank) * 1000);
    MPI_File file;
    char name[100];
    std::snprintf(name, sizeof name, "io_forms_%d_%d", own_rank, static_cast<int>(getpid()));
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    std::FILE* stream = std::fopen(name, "r");
    expect(stream != nullptr, "the file is not there");
    for (number = 0; number < types; ++number) {
        constexpr int units = 12;
        file_unit = draw(sizeof(int), units);
        const std::string representation = "ints" + std::to_string(number);
        MPI_Register_datarep(representation.c_str(), from_file, to_file, extent_in_file, nullptr);
        try_type(file, representation.c_str(), fileno(stream));
    }
    static_cast<void>(std::fclose(stream));
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
