// The C API's ways to a topology (warren/topology.h).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "topology/discovery/describe.hpp"
#include "topology/handle.hpp"
#include "topology/request.hpp"

#define WARREN_API extern "C" [[gnu::visibility("default")]]

namespace {

using warren::Error;
using warren::fail;
using warren::topology::ImageMemory;

constexpr const char* variable = "WARREN_TOPOLOGY";
constexpr const char* way_variable = "WARREN_TOPOLOGY_WAY";

// `text` behind `prefix`, if that is how it begins.
bool behind(std::string_view text, std::string_view prefix, std::string& rest) {
    if (text.substr(0, prefix.size()) != prefix) {
        return false;
    }
    rest = text.substr(prefix.size());
    return true;
}

bool is_number(const std::string& text, int& number) {
    constexpr std::size_t most_digits = 7;
    if (text.empty() || text.size() > most_digits ||
        text.find_first_not_of("0123456789") != std::string::npos) {
        return false;
    }
    number = std::atoi(text.c_str());
    return true;
}

Error discover(warren::discovery::Source source, int way, std::string& note,
               warren_topology*& topology) {
    source.note = &note;
    std::vector<std::byte> image;
    if (Error error = warren::discovery::discover_image(source, image)) {
        return error;
    }
    ImageMemory memory;
    if (Error error = ImageMemory::copy(image, memory)) {
        return error;
    }
    return warren::topology::make_handle(std::move(memory), way, topology);
}

// `note`: what was left out of a topology that could be had.
Error open_source(const std::string& source, std::string& note, warren_topology*& topology) {
    using warren::discovery::SourceKind;
    ImageMemory memory;
    std::string rest;
    int descriptor = -1;
    if (is_number(source, descriptor)) {
        if (Error error = ImageMemory::map(descriptor, memory)) {
            return error;
        }
        return warren::topology::make_handle(std::move(memory), WARREN_TOPOLOGY_NODE, topology);
    }
    if (behind(source, "image:", rest)) {
        if (Error error = ImageMemory::read(rest, memory)) {
            return error;
        }
        return warren::topology::make_handle(std::move(memory), WARREN_TOPOLOGY_FILE, topology);
    }
    if (behind(source, "xml:", rest)) {
        return discover({SourceKind::xml, rest}, WARREN_TOPOLOGY_XML, note, topology);
    }
    if (behind(source, "synthetic:", rest)) {
        return discover({SourceKind::synthetic, rest}, WARREN_TOPOLOGY_SYNTHETIC, note, topology);
    }
    if (source == "native") {
        return discover({SourceKind::native, ""}, WARREN_TOPOLOGY_NATIVE, note, topology);
    }
    return fail(WARREN_TOPOLOGY_ERR_ARGUMENT,
                "\"%s\" is no source of a topology: a descriptor's number, image:PATH, xml:PATH, "
                "synthetic:TEXT or native",
                source.c_str());
}

int report_failure(Error error, warren_topology_report* report) {
    const std::unique_ptr<warren::ErrorRecord> record(error.take());
    if (report != nullptr) {
        report->way = 0;
        std::snprintf(report->problem, sizeof report->problem, "%s", record->text.c_str());
    }
    return record->error_class;
}

} // namespace

WARREN_API int warren_topology_open(const char* source, warren_topology** topology,
                                    warren_topology_report* report) {
    if (report != nullptr) {
        *report = {};
    }
    if (topology == nullptr) {
        return WARREN_TOPOLOGY_ERR_ARGUMENT;
    }
    *topology = nullptr;
    if (source == nullptr) {
        return WARREN_TOPOLOGY_ERR_ARGUMENT;
    }
    std::string note;
    try {
        if (Error error = open_source(source, note, *topology)) {
            return report_failure(error, report);
        }
    } catch (const std::bad_alloc&) {
        if (report != nullptr) {
            std::snprintf(report->problem, sizeof report->problem, "no memory for a topology");
        }
        return WARREN_TOPOLOGY_ERR_MEMORY;
    }
    if (report != nullptr) {
        note.copy(report->problem, sizeof report->problem - 1); // which is empty so far
        report->way = (*topology)->way;
    }
    return WARREN_TOPOLOGY_SUCCESS;
}

WARREN_API int warren_topology_load(warren_topology** topology, warren_topology_report* report) {
    const char* source = std::getenv(variable);
    const bool is_given = source != nullptr && *source != '\0';
    const char* forced = std::getenv(way_variable);
    const std::string_view way = forced != nullptr ? forced : "";
    if ((!way.empty() && way != "image" && way != "native") || (way == "image" && !is_given)) {
        if (topology != nullptr) {
            *topology = nullptr;
        }
        return report_failure(
            is_given || way != "image"
                ? fail(WARREN_TOPOLOGY_ERR_ARGUMENT, "%s=%s: image or native", way_variable, forced)
                : fail(WARREN_TOPOLOGY_ERR_FILE, "%s=image, and %s names none", way_variable,
                       variable),
            report);
    }
    if (!is_given || way == "native") {
        return warren_topology_open("native", topology, report);
    }
    int descriptor = -1;
    const bool is_descriptor = is_number(source, descriptor);
    std::string rest;
    if (way == "image" && !is_descriptor && !behind(source, "image:", rest)) {
        if (topology != nullptr) {
            *topology = nullptr;
        }
        return report_failure(fail(WARREN_TOPOLOGY_ERR_ARGUMENT,
                                   "%s=image, and %s=%s is none: a descriptor's number or "
                                   "image:PATH",
                                   way_variable, variable, source),
                              report);
    }
    if (is_descriptor) {
        warren::topology::request_image(descriptor);
    }
    const int by_source = warren_topology_open(source, topology, report);
    if (by_source == WARREN_TOPOLOGY_SUCCESS || way == "image") {
        return by_source;
    }
    warren_topology_report native{};
    const int status = warren_topology_open("native", topology, &native);
    if (report != nullptr) {
        report->way = native.way;
        if (status != WARREN_TOPOLOGY_SUCCESS) {
            *report = native;
        }
    }
    return status;
}
