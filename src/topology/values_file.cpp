#include "topology/values_file.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

#include "topology/mapping.hpp"

namespace warren::topology {

namespace {

constexpr std::string_view first_line = "warren memory values 1";
constexpr std::size_t max_processor = 8192; // Linux can't be built for more
constexpr std::size_t max_nodes = 1024;     // nor for more of these
constexpr std::size_t max_model = 256;

constexpr std::pair<std::uint32_t, const char*> attributes[] = {
    {WARREN_ATTRIBUTE_BANDWIDTH, "bandwidth"},
    {WARREN_ATTRIBUTE_READ_BANDWIDTH, "read_bandwidth"},
    {WARREN_ATTRIBUTE_WRITE_BANDWIDTH, "write_bandwidth"},
    {WARREN_ATTRIBUTE_LATENCY, "latency"},
    {WARREN_ATTRIBUTE_READ_LATENCY, "read_latency"},
    {WARREN_ATTRIBUTE_WRITE_LATENCY, "write_latency"}};

bool is_latency(std::uint32_t attribute) {
    return attribute == WARREN_ATTRIBUTE_LATENCY || attribute == WARREN_ATTRIBUTE_READ_LATENCY ||
           attribute == WARREN_ATTRIBUTE_WRITE_LATENCY;
}

// FNV-1a, for what changes by accident.
std::uint64_t checksum_of(std::string_view text) {
    std::uint64_t sum = 0xcbf29ce484222325;
    for (const char character : text) {
        sum = (sum ^ static_cast<unsigned char>(character)) * 0x100000001b3;
    }
    return sum;
}

std::string hexadecimal(std::uint64_t number) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
    return text;
}

template <typename Number>
bool read_number(std::string_view text, Number& number) {
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    return !text.empty() && result.ec == std::errc() && result.ptr == text.data() + text.size();
}

// Takes what is before `separator`, and the separator, off `rest`.
std::string_view take(std::string_view& rest, char separator) {
    const std::size_t end = rest.find(separator);
    const std::string_view part = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    return part;
}

bool same(const Bits& one, const Bits& other) {
    return includes(one, other) && includes(other, one);
}

// Reads the lines; says which one is wrong.
class Reader {
  public:
    Reader(std::string_view text, ValuesFile& file) : text_(text), rest_(text), file_(file) {}

    Error read() {
        if (text_.size() > max_values_bytes) {
            return wrong("the file is larger than any such file");
        }
        if (next() != first_line) {
            return wrong("it does not begin with 'warren memory values 1'");
        }
        std::string_view line = next();
        if (!line.starts_with("machine ") || line.size() == 8 || line.size() > 8 + max_model) {
            return wrong("no line 'machine MODEL'");
        }
        file_.machine.model = line.substr(8);
        for (line = next(); !line.starts_with("end "); line = next()) {
            if (ended_) {
                return wrong("the line 'end …' is missing: the file is cut off");
            }
            if (line.starts_with("# ")) {
                file_.remarks.emplace_back(line.substr(2));
            } else if (line.starts_with("node ")) {
                if (!read_memory(line.substr(5))) {
                    return wrong("not as in 'node 0 cpus 0-3 bytes 1073741824', or twice");
                }
            } else if (line.starts_with("value ")) {
                if (const char* reason = read_value(line.substr(6))) {
                    return wrong(reason);
                }
            } else {
                return wrong("neither node, value, end nor a remark");
            }
        }
        return read_end(line.substr(4));
    }

  private:
    std::string_view next() {
        ended_ = rest_.empty();
        ++line_;
        begin_ = text_.size() - rest_.size();
        return take(rest_, '\n');
    }

    Error wrong(const char* reason) const {
        return fail(WARREN_TOPOLOGY_ERR_DAMAGED, "memory values, line %zu: %s", line_, reason);
    }

    bool read_memory(std::string_view line) {
        MachineMemory memory;
        if (!read_number(take(line, ' '), memory.node) || memory.node >= max_nodes ||
            take(line, ' ') != "cpus" || !read_list(take(line, ' '), memory.cpus) ||
            take(line, ' ') != "bytes" || !read_number(line, memory.bytes) ||
            !nodes_.insert(memory.node).second) {
            return false;
        }
        file_.machine.memories.push_back(std::move(memory));
        return true;
    }

    // Why not, or null.
    const char* read_value(std::string_view line) {
        MeasuredValue value;
        const std::string_view name = take(line, ' ');
        const auto* known = std::find_if(std::begin(attributes), std::end(attributes),
                                         [&](const auto& entry) { return entry.second == name; });
        if (known == std::end(attributes)) {
            return "not a bandwidth or latency";
        }
        value.attribute = known->first;
        if (take(line, ' ') != "from" || !read_list(take(line, ' '), value.from) ||
            is_empty(value.from) || take(line, ' ') != "to" ||
            !read_number(take(line, ' '), value.node) || take(line, ' ') != "is" ||
            !read_number(line, value.value)) {
            return "not as in 'value latency from 0-3 to 0 is 100'";
        }
        if (!nodes_.contains(value.node)) {
            return "of a memory that has no line 'node'";
        }
        const bool latency = is_latency(value.attribute);
        if (value.value == 0 || value.value > (latency ? max_latency_ns : max_bandwidth)) {
            return latency ? "no memory has such a latency" : "no memory has such a bandwidth";
        }
        if (!pairs_.insert({value.attribute, list_of(value.from), value.node}).second) {
            return "the same for the second time";
        }
        file_.values.push_back(std::move(value));
        return nullptr;
    }

    Error read_end(std::string_view line) {
        std::size_t count = 0;
        const std::string_view number = take(line, ' ');
        if (!read_number(number, count) || count != file_.values.size() ||
            line != hexadecimal(checksum_of(text_.substr(0, begin_)))) {
            return wrong("the number of values or the checksum is wrong: the file is damaged");
        }
        return rest_.empty() ? Error{} : wrong("something follows the line 'end …'");
    }

    std::string_view text_;
    std::string_view rest_;
    ValuesFile& file_;
    std::size_t line_ = 0;
    std::size_t begin_ = 0; // of the line, in the text
    bool ended_ = false;
    std::set<std::uint32_t> nodes_;
    std::set<std::tuple<std::uint32_t, std::string, std::uint32_t>> pairs_;
};

void sort_by_node(MachineIdentity& machine) {
    std::sort(
        machine.memories.begin(), machine.memories.end(),
        [](const MachineMemory& one, const MachineMemory& other) { return one.node < other.node; });
}

// One line, of the length that files may have.
std::string model_text(std::string model) {
    std::replace_if(
        model.begin(), model.end(), [](char character) { return character < ' '; }, ' ');
    model.resize(std::min(model.size(), max_model));
    return model.empty() ? "unknown" : model;
}

std::string folder_of_user() {
    if (const char* folder = std::getenv("XDG_CONFIG_HOME"); folder != nullptr && *folder == '/') {
        return folder;
    }
    const char* home = std::getenv("HOME");
    return home != nullptr && *home == '/' ? std::string(home) + "/.config" : "";
}

std::string file_in(const std::string& folder, const MachineIdentity& machine) {
    return folder + "/warren/memory/" + key_of(machine) + ".values";
}

} // namespace

std::string list_of(const Bits& bits) {
    std::string text;
    for (std::size_t bit = 0; bit < bits.size() * 64; ++bit) {
        if (!has_bit(bits, bit)) {
            continue;
        }
        const std::size_t begin = bit;
        while (has_bit(bits, bit + 1)) {
            ++bit;
        }
        text += (text.empty() ? "" : ",") + std::to_string(begin);
        if (bit > begin) {
            text += "-" + std::to_string(bit);
        }
    }
    return text.empty() ? "none" : text;
}

bool read_list(std::string_view text, Bits& bits) {
    bits.clear();
    if (text == "none") {
        return true;
    }
    do {
        std::string_view part = take(text, ',');
        const bool range = part.find('-') != std::string_view::npos;
        std::size_t begin = 0;
        if (!read_number(take(part, '-'), begin)) {
            return false;
        }
        std::size_t end = begin;
        if ((range && !read_number(part, end)) || begin > end || end >= max_processor) {
            return false;
        }
        for (std::size_t bit = begin; bit <= end; ++bit) {
            add_bit(bits, bit);
        }
    } while (!text.empty());
    return true;
}

const char* attribute_name_in_file(std::uint32_t attribute) {
    for (const auto& [number, name] : attributes) {
        if (number == attribute) {
            return name;
        }
    }
    return nullptr;
}

MachineIdentity identity_of(const Description& description) {
    MachineIdentity machine;
    for (std::uint32_t object = 0; object < description.objects.size(); ++object) {
        const ObjectType type = description.type_of(object);
        if (type != ObjectType::package && type != ObjectType::machine) {
            continue;
        }
        for (const Info& info : description.objects[object].infos) {
            if (info.name == "CPUModel" && machine.model.empty()) {
                machine.model = info.value;
            }
        }
    }
    machine.model = model_text(machine.model);
    const std::vector<std::uint32_t> targets = description.targets();
    for (const std::uint32_t target : targets) {
        const Object& node = description.objects[target];
        machine.memories.push_back(
            {node.os_index, node.cpus, node.details.empty() ? 0 : node.details[0]});
    }
    sort_by_node(machine);
    return machine;
}

MachineIdentity identity_of(const warren_topology* topology) {
    MachineIdentity machine;
    const char* model = warren_object_info(topology, 0, "CPUModel");
    if (model == nullptr) {
        model = warren_object_info(
            topology, warren_topology_object(topology, WARREN_OBJECT_PACKAGE, 0), "CPUModel");
    }
    machine.model = model_text(model != nullptr ? model : "");
    for (std::uint32_t index = 0; index < warren_topology_count(topology, WARREN_OBJECT_NUMA_NODE);
         ++index) {
        const warren_object node = warren_topology_object(topology, WARREN_OBJECT_NUMA_NODE, index);
        MachineMemory memory{
            warren_object_os_index(topology, node), {}, warren_object_memory_bytes(topology, node)};
        const warren_set cpus = warren_object_cpus(topology, node);
        for (std::uint32_t cpu = warren_set_next(cpus, 0); cpu != WARREN_NO_INDEX;
             cpu = warren_set_next(cpus, cpu + 1)) {
            add_bit(memory.cpus, cpu);
        }
        machine.memories.push_back(std::move(memory));
    }
    sort_by_node(machine);
    return machine;
}

std::string difference(const MachineIdentity& file, const MachineIdentity& machine) {
    if (file.model != machine.model) {
        return "its processors are '" + file.model + "', here they are '" + machine.model + "'";
    }
    if (file.memories.size() != machine.memories.size()) {
        return "it has " + std::to_string(file.memories.size()) + " memories, here are " +
               std::to_string(machine.memories.size());
    }
    MachineIdentity sorted = file;
    sort_by_node(sorted);
    for (std::size_t place = 0; place < sorted.memories.size(); ++place) {
        const MachineMemory& one = sorted.memories[place];
        const MachineMemory& other = machine.memories[place];
        const std::string name = "its memory " + std::to_string(one.node);
        if (one.node != other.node) {
            return name + " is not here";
        }
        if (!same(one.cpus, other.cpus)) {
            return name + " is local to processors " + list_of(one.cpus) + ", here to " +
                   list_of(other.cpus);
        }
        const std::uint64_t larger = std::max(one.bytes, other.bytes);
        if (larger - std::min(one.bytes, other.bytes) > larger / 10) {
            return name + " has " + std::to_string(one.bytes) + " bytes, here " +
                   std::to_string(other.bytes);
        }
    }
    return "";
}

std::string key_of(const MachineIdentity& machine) {
    std::string text = machine.model;
    for (const MachineMemory& memory : machine.memories) {
        text += "\n" + std::to_string(memory.node) + " " + list_of(memory.cpus);
    }
    return hexadecimal(checksum_of(text));
}

std::string text_of(const ValuesFile& file) {
    std::string text = std::string(first_line) + "\nmachine " + file.machine.model + "\n";
    for (const MachineMemory& memory : file.machine.memories) {
        text += "node " + std::to_string(memory.node) + " cpus " + list_of(memory.cpus) +
                " bytes " + std::to_string(memory.bytes) + "\n";
    }
    for (const std::string& remark : file.remarks) {
        text += "# " + remark + "\n";
    }
    for (const MeasuredValue& value : file.values) {
        text += std::string("value ") + attribute_name_in_file(value.attribute) + " from " +
                list_of(value.from) + " to " + std::to_string(value.node) + " is " +
                std::to_string(value.value) + "\n";
    }
    const std::string sum = hexadecimal(checksum_of(text));
    return text + "end " + std::to_string(file.values.size()) + " " + sum + "\n";
}

Error parse_values(std::string_view text, ValuesFile& file) {
    ValuesFile read;
    if (Error error = Reader(text, read).read()) {
        return error;
    }
    file = std::move(read);
    return {};
}

Error read_values(const std::string& path, ValuesFile& file) {
    // A pipe would make us wait for somebody.
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status {};
    if (descriptor < 0 || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        if (descriptor >= 0) {
            close(descriptor);
        }
        return fail(WARREN_TOPOLOGY_ERR_FILE, "memory values: %s is no file that can be read",
                    path.c_str());
    }
    std::string text;
    Error error = check_owner(status, "memory values: " + path);
    if (!error) {
        char block[65536];
        ssize_t bytes = 0;
        while ((bytes = ::read(descriptor, block, sizeof block)) > 0 &&
               text.size() <= max_values_bytes) {
            text.append(block, static_cast<std::size_t>(bytes));
        }
    }
    close(descriptor);
    if (error) {
        return error;
    }
    if (Error refused = parse_values(text, file)) {
        ErrorRecord* record = refused.take();
        error = fail(record->error_class, "%s: %s", path.c_str(), record->text.c_str());
        delete record;
    }
    return error;
}

std::string find_values(const MachineIdentity& machine) {
    if (const char* named = std::getenv("WARREN_MEMORY_VALUES"); named != nullptr && *named != 0) {
        return std::string_view(named) == "none" ? "" : named;
    }
    for (const std::string& folder : {folder_of_user(), std::string("/etc")}) {
        std::string path = file_in(folder, machine);
        if (!folder.empty() && access(path.c_str(), F_OK) == 0) {
            return path;
        }
    }
    return "";
}

std::string place_of_values(const MachineIdentity& machine) {
    const std::string folder = folder_of_user();
    return folder.empty() ? "" : file_in(folder, machine);
}

Error merge_values(const ValuesFile& file, Description& description) {
    const std::string differs = difference(file.machine, identity_of(description));
    if (!differs.empty()) {
        return fail(WARREN_TOPOLOGY_ERR_DAMAGED, "the memory values are of another machine: %s",
                    differs.c_str());
    }
    const std::vector<std::uint32_t> targets = description.targets();
    const auto place_of = [&](std::uint32_t node) {
        return static_cast<std::uint32_t>(
            std::find_if(targets.begin(), targets.end(),
                         [&](std::uint32_t target) {
                             return description.objects[target].os_index == node;
                         }) -
            targets.begin());
    };
    for (const MeasuredValue& value : file.values) {
        if (!includes(description.objects[0].complete_cpus, value.from)) {
            return fail(WARREN_TOPOLOGY_ERR_DAMAGED,
                        "the memory values are of another machine: it has processors %s",
                        list_of(value.from).c_str());
        }
    }
    for (const MeasuredValue& value : file.values) {
        description.attributes[value.attribute].values.push_back(
            {none, value.from, place_of(value.node), value.value, WARREN_ORIGIN_MEASURED});
    }
    return {};
}

Error merge_found_values(Description& description) {
    const std::string path = find_values(identity_of(description));
    if (path.empty()) {
        return {};
    }
    ValuesFile file;
    if (Error error = read_values(path, file)) {
        return error;
    }
    if (Error error = merge_values(file, description)) {
        ErrorRecord* record = error.take();
        Error named = fail(record->error_class, "%s: %s", path.c_str(), record->text.c_str());
        delete record;
        return named;
    }
    return {};
}

} // namespace warren::topology
