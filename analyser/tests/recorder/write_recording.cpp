// Writes a small recording with every kind of record, for recording_test.py to read.
//     write_recording FOLDER

#include <cstdio>
#include <cstring>
#include <string>
#include <sys/stat.h>

#include "analyser/recorder/recording.hpp"

namespace {

using namespace warren::locality;

int failures = 0;

void must(warren::Error error) {
    if (warren::ErrorRecord* record = error.take()) {
        std::fprintf(stderr, "%s\n", record->text.c_str());
        delete record;
        ++failures;
    }
}

template <typename Record>
void write(const std::string& folder, std::initializer_list<Record> records,
           const char* name = Record::file) {
    static Allowance allowance;
    RecordFile<Record> file;
    must(file.open(folder, allowance, name));
    for (const Record& record : records) {
        file.append(record);
    }
    file.close();
    failures += file.lost() == 0 ? 0 : 1;
}

void write_description(const std::string& folder) {
    ProcessDescription process;
    process.mode = "first-touch";
    process.granularity = process.page_size = 4096;
    process.pid = 4711;
    process.rank = 3;
    process.size = 8;
    process.rank_source = "Warren";
    process.command = {"./program", "-x"};
    process.start_ns = 1000;
    process.end_ns = 9000;
    process.end = "exit 0";
    process.nodes = {0, 1};
    DescriptionFile description;
    must(description.open(folder));
    must(description.write(process));
}

void write_threads(const std::string& folder) {
    // Tid 20 belongs first to thread 1 and then to thread 2.
    write<ThreadRecord>(folder, {{ThreadRecord::began, 0, 10, no_thread, 1000, 0, 0, "main"},
                                 {ThreadRecord::began, 1, 20, 0, 2000, 0, 0, "one"},
                                 {ThreadRecord::ended, 1, 20, 0, 3000, 700, 0, "one"},
                                 {ThreadRecord::began, 2, 20, 0, 4000, 0, 0, "two"},
                                 {ThreadRecord::ended, 2, 20, 0, 5000, 800, 12, "two"},
                                 {ThreadRecord::ended, 0, 10, no_thread, 9000, 900, 0, "main"}});
}

void write_modules(const std::string& folder) {
    Allowance allowance;
    ByteFile strings;
    must(strings.open(folder + "/" + strings_file, allowance));
    const std::string path = "/usr/bin/pro\xc3\xbc";
    strings.append(path.data(), path.size());
    strings.close();
    ModuleRecord module{};
    module.event = ModuleRecord::loaded;
    module.path_bytes = static_cast<std::uint32_t>(path.size());
    module.begin = 0x400000;
    module.end = 0x500000;
    module.file_offset = 0x1000;
    module.build_id_bytes = 3;
    std::memcpy(module.build_id, "\x12\x00\xff", 3);
    write<ModuleRecord>(folder, {module});
}

void write_accesses(const std::string& folder) {
    write<StackRecord>(folder, {{StackRecord::return_address, 0, 0x400100},
                                {StackRecord::return_address, 1, 0x400200}});
    write<StackRecord>(
        folder,
        {{StackRecord::return_address, 0, 0x400300}, {StackRecord::instruction, 1, 0x400400}},
        StackRecord::touches_file);
    write<AllocationRecord>(
        folder, {{AllocationRecord::began, AllocationRecord::heap, 0x7000, 0x2000, 2500, 20, 2, 0},
                 {AllocationRecord::ended, AllocationRecord::heap, 0x7000, 0, 4500, 20, 0, 0}});
    write<TouchRecord>(
        folder, {{TouchRecord::valid | TouchRecord::write, 1, 0x7008, 4096, 2600, 0xabc000, 2, 1}});
    write<IntervalRecord>(folder, {{1, 0, 1000, 9000}});
    write<CountRecord>(folder, {{1, 2, 0x7000, 1, 0, 5, 6, 40, 48}});
    write<FirstRecord>(
        folder, {{FirstRecord::valid | FirstRecord::write, 1, 0x7000, 2600, 0x400400, 1, 2}});
    write<CommunicationRecord>(folder, {{1, 1, 2, 0, 9, 72}});
    write<BytesRecord>(folder, {{1, 2, 0x7000, 1, 0, 0xf0, std::uint64_t{0xff} << 56, 0x400400}});
}

void write_names(const std::string& folder) {
    PhaseRecord phase{};
    phase.event = PhaseRecord::pcontrol;
    phase.tid = 20;
    phase.time_ns = 2700;
    phase.level = -2;
    std::strcpy(phase.name, "solve");
    write<PhaseRecord>(folder, {phase});
    NameRecord name{};
    name.event = 1;
    name.tid = 10;
    name.address = 0x7000;
    name.size = 64;
    name.time_ns = 2800;
    std::strcpy(name.name, "uBuffer");
    write<NameRecord>(folder, {name});
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        return 2;
    }
    const std::string top = argv[1];
    const std::string folder = top + "/rank-00003";
    mkdir(top.c_str(), 0777);
    mkdir(folder.c_str(), 0777);
    write_description(folder);
    write_threads(folder);
    write_modules(folder);
    write_accesses(folder);
    write_names(folder);
    return failures == 0 ? 0 : 1;
}
