// Random data representations, infos and views: what is refused is an error, and what is accepted
// gives data back as they were written. --seed S --rounds N.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <mpi.h>
#include <unistd.h>

namespace {

int own_rank;
int ranks;
unsigned seed = 1;
int round_number;
std::mt19937 common; // the same at all ranks
std::mt19937 own;

int draw(int low, int high, std::mt19937& numbers = common) {
    return low + static_cast<int>(numbers() % static_cast<unsigned>(high - low + 1));
}

void expect(bool holds, const char* what, const std::string& value = "") {
    if (!holds) {
        std::fprintf(stderr, "rank %d, seed %u, round %d: %s %s\n", own_rank, seed, round_number,
                     what, value.c_str());
        MPI_Abort(MPI_COMM_WORLD, 1);
        std::abort();
    }
}

std::string text_of(int code) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    expect(MPI_Error_string(code, text.data(), &length) == MPI_SUCCESS, "MPI_Error_string");
    expect(length > 0 && length < MPI_MAX_ERROR_STRING, "the length of an error's text");
    return text.data();
}

// Any bytes, or what can be printed.
std::string draw_text(int longest, bool printable, std::mt19937& numbers = common) {
    std::string text;
    for (int left = draw(0, longest, numbers); left > 0; --left) {
        text.push_back(
            static_cast<char>(printable ? draw(33, 126, numbers) : draw(1, 255, numbers)));
    }
    return text;
}

// ---- Infos

constexpr const char* keys[] = {"cb_buffer_size",     "cb_nodes",          "romio_cb_read",
                                "romio_cb_write",     "romio_no_indep_rw", "romio_ds_read",
                                "romio_ds_write",     "access_style",      "ind_rd_buffer_size",
                                "ind_wr_buffer_size", "chunked",           "collective_buffering",
                                "chunked_item",       "chunked_size",      "file_perm",
                                "io_node_list",       "nb_proc",           "num_io_nodes",
                                "striping_factor",    "striping_unit",     "filename",
                                "cb_config_list",     "cb_block_size",     "mpi_assert_no_any_tag"};
constexpr const char* values[] = {"",
                                  "0",
                                  "-1",
                                  "enable",
                                  "disable",
                                  "automatic",
                                  "true",
                                  "FALSE",
                                  "9223372036854775807",
                                  "18446744073709551616",
                                  "-9223372036854775809",
                                  "4095",
                                  "1e6",
                                  "0x1000",
                                  " 4096 ",
                                  "4096k",
                                  "read_once,write_once",
                                  "*:1",
                                  "2147483648",
                                  "0644",
                                  "999",
                                  "\377\376",
                                  "%s%n%d"};

MPI_Info draw_info(std::mt19937& numbers) {
    if (draw(0, 5, numbers) == 0) {
        return MPI_INFO_NULL;
    }
    MPI_Info info;
    MPI_Info_create(&info);
    for (int left = draw(0, 7, numbers); left > 0; --left) {
        const bool is_known = draw(0, 4, numbers) > 0;
        const std::string key = is_known
                                    ? keys[draw(0, static_cast<int>(std::size(keys)) - 1, numbers)]
                                    : "k" + draw_text(MPI_MAX_INFO_KEY - 3, true, numbers);
        std::string value = values[draw(0, static_cast<int>(std::size(values)) - 1, numbers)];
        if (draw(0, 3, numbers) == 0) {
            value = draw(0, 1, numbers) == 0 ? std::to_string(draw(0, 100'000'000, numbers))
                                             : draw_text(MPI_MAX_INFO_VAL - 2, false, numbers);
        }
        expect(MPI_Info_set(info, key.c_str(), value.c_str()) == MPI_SUCCESS, "MPI_Info_set");
    }
    return info;
}

void free_info(MPI_Info info) {
    if (info != MPI_INFO_NULL) {
        MPI_Info_free(&info);
    }
}

void look_at_info(MPI_File file) {
    MPI_Info info;
    int count = 0;
    expect(MPI_File_get_info(file, &info) == MPI_SUCCESS, "MPI_File_get_info");
    MPI_Info_get_nkeys(info, &count);
    for (int i = 0; i < count; ++i) {
        std::array<char, MPI_MAX_INFO_KEY + 1> key{};
        std::array<char, MPI_MAX_INFO_VAL + 1> value{};
        int bytes = static_cast<int>(value.size());
        int found = 0;
        MPI_Info_get_nthkey(info, i, key.data());
        MPI_Info_get_string(info, key.data(), &bytes, value.data(), &found);
        expect(found != 0, "a key without a value:", key.data());
    }
    MPI_Info_free(&info);
}

// ---- Representations: each byte of a file is combined with a key

int take_bytes(void* data, MPI_Datatype type, int count, void* file, MPI_Offset position,
               void* state) {
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    auto* to = static_cast<unsigned char*>(data) + position * bytes;
    const auto* from = static_cast<const unsigned char*>(file);
    for (long i = 0; i < long{count} * bytes; ++i) {
        to[i] = static_cast<unsigned char>(from[i] ^ *static_cast<unsigned char*>(state));
    }
    return MPI_SUCCESS;
}

int give_bytes(void* data, MPI_Datatype type, int count, void* file, MPI_Offset position,
               void* state) {
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    const auto* from = static_cast<const unsigned char*>(data) + position * bytes;
    auto* to = static_cast<unsigned char*>(file);
    for (long i = 0; i < long{count} * bytes; ++i) {
        to[i] = static_cast<unsigned char>(from[i] ^ *static_cast<unsigned char*>(state));
    }
    return MPI_SUCCESS;
}

int tell_extent(MPI_Datatype type, MPI_Aint* extent, void* /*state*/) {
    MPI_Aint lower = 0;
    return MPI_Type_get_extent(type, &lower, extent);
}

struct Representation {
    std::string name;
    bool is_registered = false;
    bool gives_back = true; // what was written
};

Representation draw_registered() {
    static std::array<unsigned char, 256> states;
    for (std::size_t i = 0; i < states.size(); ++i) {
        states[i] = static_cast<unsigned char>(i);
    }
    Representation made;
    const bool is_long = draw(0, 7) == 0;
    made.name = draw_text(is_long ? MPI_MAX_DATAREP_STRING + 150 : 40, draw(0, 1) == 0);
    made.name = draw(0, 9) == 0 ? "native" : made.name;
    const bool reads = draw(0, 3) > 0;
    const bool writes = draw(0, 3) > 0;
    void* state = &states[static_cast<std::size_t>(draw(1, 255))];
    const int code =
        MPI_Register_datarep(made.name.c_str(), reads ? take_bytes : MPI_CONVERSION_FN_NULL,
                             writes ? give_bytes : MPI_CONVERSION_FN_NULL, tell_extent, state);
    expect(code == MPI_SUCCESS || made.name.size() >= MPI_MAX_DATAREP_STRING || made.name.empty() ||
               text_of(code).find("MPI_Register_datarep") != std::string::npos,
           "a refusal without the call's name:", text_of(code));
    expect(code != MPI_SUCCESS || made.name != "native", "native is known");
    made.is_registered = code == MPI_SUCCESS;
    made.gives_back = reads == writes;
    return made;
}

Representation draw_representation(const Representation& registered) {
    constexpr const char* known[] = {"native", "internal", "external32"};
    if (registered.is_registered && draw(0, 2) > 0) {
        return registered;
    }
    return {.name = draw(0, 2) > 0 ? known[draw(0, 2)] : draw_text(40, draw(0, 1) == 0)};
}

// ---- Views and accesses

MPI_Datatype make_filetype(MPI_Datatype element, int length) {
    MPI_Datatype blocks;
    MPI_Datatype type;
    int bytes = 0;
    MPI_Type_size(element, &bytes);
    MPI_Type_vector(3, length, length * ranks, element, &blocks);
    MPI_Type_create_resized(blocks, 0, MPI_Aint{3} * length * ranks * bytes, &type);
    MPI_Type_free(&blocks);
    MPI_Type_commit(&type);
    return type;
}

using Access = int (*)(MPI_File, MPI_Offset, void*, int, MPI_Datatype);

int write_alone(MPI_File file, MPI_Offset at, void* data, int count, MPI_Datatype type) {
    return MPI_File_write_at(file, at, data, count, type, MPI_STATUS_IGNORE);
}

int read_alone(MPI_File file, MPI_Offset at, void* data, int count, MPI_Datatype type) {
    return MPI_File_read_at(file, at, data, count, type, MPI_STATUS_IGNORE);
}

int write_together(MPI_File file, MPI_Offset at, void* data, int count, MPI_Datatype type) {
    return MPI_File_write_at_all(file, at, data, count, type, MPI_STATUS_IGNORE);
}

int read_together(MPI_File file, MPI_Offset at, void* data, int count, MPI_Datatype type) {
    return MPI_File_read_at_all(file, at, data, count, type, MPI_STATUS_IGNORE);
}

int write_later(MPI_File file, MPI_Offset at, void* data, int count, MPI_Datatype type) {
    MPI_Request request;
    const int code = MPI_File_iwrite_at(file, at, data, count, type, &request);
    return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int read_later(MPI_File file, MPI_Offset at, void* data, int count, MPI_Datatype type) {
    MPI_Request request;
    const int code = MPI_File_iread_at(file, at, data, count, type, &request);
    return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void write_and_read(MPI_File file, MPI_Datatype element, bool gives_back) {
    constexpr Access writes[] = {write_alone, write_together, write_later};
    constexpr Access reads[] = {read_alone, read_together, read_later};
    const int way = draw(0, 2);
    const int count = draw(1, 400);
    int bytes = 0;
    MPI_Type_size(element, &bytes);
    std::vector<unsigned char> written(static_cast<std::size_t>(count) *
                                       static_cast<std::size_t>(bytes));
    for (std::size_t i = 0; i < written.size(); ++i) {
        written[i] = static_cast<unsigned char>(i * 37 + static_cast<std::size_t>(own_rank) * 11);
    }
    const std::vector<unsigned char> expected = written;
    std::vector<unsigned char> back(written.size());
    int code = writes[way](file, 0, written.data(), count, element);
    expect(code == MPI_SUCCESS || !gives_back, "writing:", text_of(code));
    expect(written == expected, "a write has changed the program's data");
    MPI_Barrier(MPI_COMM_WORLD);
    code = reads[way](file, 0, back.data(), count, element);
    expect(code == MPI_SUCCESS || !gives_back, "reading:", text_of(code));
    expect(!gives_back || back == expected, "other data come back");
}

void look_at_view(MPI_File file, const std::string& name) {
    std::array<char, MPI_MAX_DATAREP_STRING + 1> got{};
    MPI_Offset place = 0;
    MPI_Datatype types[2];
    expect(MPI_File_get_view(file, &place, &types[0], &types[1], got.data()) == MPI_SUCCESS,
           "MPI_File_get_view");
    expect(name == got.data(), "another representation is in use:", got.data());
    for (MPI_Datatype& type : types) {
        int integers = 0;
        int addresses = 0;
        int datatypes = 0;
        int combiner = 0;
        MPI_Type_get_envelope(type, &integers, &addresses, &datatypes, &combiner);
        if (combiner != MPI_COMBINER_NAMED) {
            MPI_Type_free(&type);
        }
    }
}

void use_file(MPI_File file, const Representation& registered) {
    const MPI_Datatype elements[] = {MPI_INT, MPI_DOUBLE, MPI_SHORT, MPI_BYTE};
    MPI_Datatype element = elements[draw(0, 3)];
    const int length = draw(1, 5);
    int bytes = 0;
    MPI_Type_size(element, &bytes);
    const Representation wanted = draw_representation(registered);
    MPI_Datatype type = make_filetype(element, length);
    const MPI_Offset begin = draw(0, 19) == 0 ? -draw(1, 5) : draw(0, 100);
    MPI_Info info = draw_info(own);
    const MPI_Offset place = begin < 0 ? begin : begin + MPI_Offset{own_rank} * length * bytes;
    const int code = MPI_File_set_view(file, place, element, type, wanted.name.c_str(), info);
    free_info(info);
    MPI_Type_free(&type);
    expect(code != MPI_SUCCESS || begin >= 0, "a negative displacement is accepted");
    if (code != MPI_SUCCESS) {
        expect(text_of(code).find("MPI_File_set_view") != std::string::npos,
               "a refusal without the call's name:", text_of(code));
        return;
    }
    look_at_view(file, wanted.name);
    info = draw_info(own);
    MPI_File_set_info(file, info);
    free_info(info);
    write_and_read(file, element, wanted.gives_back);
    look_at_info(file);
}

void run_round(const std::string& name) {
    const Representation registered = draw_registered();
    MPI_Info info = draw_info(draw(0, 1) == 0 ? common : own);
    const bool is_valid = draw(0, 11) > 0;
    const int mode = is_valid ? MPI_MODE_CREATE | MPI_MODE_RDWR : draw(0, 1023);
    MPI_File file;
    const int code = MPI_File_open(MPI_COMM_WORLD, name.c_str(), mode, info, &file);
    free_info(info);
    if (code != MPI_SUCCESS) {
        expect(!is_valid, "opening:", text_of(code));
        return;
    }
    if (is_valid) {
        use_file(file, registered);
    }
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
}

} // namespace

int main(int argc, char** argv) {
    int rounds = 100;
    for (int i = 1; i + 1 < argc; i += 2) {
        (std::strcmp(argv[i], "--seed") == 0 ? seed : reinterpret_cast<unsigned&>(rounds)) =
            static_cast<unsigned>(std::atoi(argv[i + 1]));
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int process = static_cast<int>(getpid());
    MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD);
    const std::string name = "io_fuzz_" + std::to_string(process);
    common.seed(seed);
    own.seed(seed * 1000 + static_cast<unsigned>(own_rank));
    for (round_number = 0; round_number < rounds; ++round_number) {
        run_round(name);
    }
    if (own_rank == 0) {
        unlink(name.c_str());
        std::puts("ok");
    }
    return MPI_Finalize();
}
