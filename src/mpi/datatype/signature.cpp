#include "mpi/datatype/signature.hpp"

#include <algorithm>

#include "mpi/datatype/derived.hpp"

namespace warren::datatype {

namespace {

// Result of the walk through packed data: basic elements, and whether the data ended inside
// one.
struct Tally {
    MPI_Count elements = 0;
    bool broken = false;
};

Tally count_basic(std::uint8_t basic, MPI_Count bytes) {
    const BasicParts parts = parts_of(basic);
    if (parts.second == 0) {
        return {bytes / parts.first, bytes % parts.first != 0};
    }
    const MPI_Count pair = parts.first + parts.second;
    const MPI_Count rest = bytes % pair;
    return {2 * (bytes / pair) + (rest >= parts.first ? 1 : 0), rest != 0 && rest != parts.first};
}

Tally count_in(const Signature& signature, MPI_Count bytes) {
    Tally tally;
    for (const Run& run : signature.runs) {
        if (bytes == 0) {
            break;
        }
        const MPI_Count whole = std::min(bytes / run.bytes, run.count);
        tally.elements += whole * run.elements;
        bytes -= whole * run.bytes;
        if (whole < run.count && bytes > 0) {
            const Tally rest =
                run.inner ? count_in(*run.inner, bytes) : count_basic(run.basic, bytes);
            return {tally.elements + rest.elements, rest.broken};
        }
    }
    return tally;
}

} // namespace

void append(Signature& signature, const Datatype& type, MPI_Count count) {
    if (count == 0 || type.size == 0) {
        return;
    }
    Run run{.count = count, .bytes = type.size, .elements = 0, .inner = nullptr, .basic = 0};
    if (type.basic != 0) {
        const BasicParts parts = parts_of(type.basic);
        run.basic = type.basic;
        run.bytes = parts.first + parts.second;
        run.elements = parts.second == 0 ? 1 : 2;
        run.count = count * (type.size / run.bytes);
    } else {
        run.inner = type.derived->signature;
        run.elements = elements_of(type);
    }
    if (!signature.runs.empty()) {
        Run& last = signature.runs.back();
        if (last.basic == run.basic && last.inner == run.inner) {
            last.count += run.count;
            return;
        }
    }
    signature.runs.push_back(std::move(run));
}

MPI_Count elements_of(const Datatype& type) {
    if (type.size == 0) {
        return 0;
    }
    if (type.basic != 0) {
        return count_basic(type.basic, type.size).elements;
    }
    MPI_Count elements = 0;
    for (const Run& run : type.derived->signature->runs) {
        elements += run.count * run.elements;
    }
    return elements;
}

MPI_Count Datatype::count_in(MPI_Count bytes) const {
    if (size == 0) {
        // The standard (3.2.5): zero when the type has no data and nothing came.
        return bytes == 0 ? 0 : MPI_UNDEFINED;
    }
    return bytes % size == 0 ? bytes / size : MPI_UNDEFINED;
}

MPI_Count Datatype::elements_in(MPI_Count bytes) const {
    if (size == 0) {
        return bytes == 0 ? 0 : MPI_UNDEFINED;
    }
    if (basic != 0) {
        const Tally tally = count_basic(basic, bytes);
        return tally.broken ? MPI_UNDEFINED : tally.elements;
    }
    const Tally tally = datatype::count_in(*derived->signature, bytes % size);
    return tally.broken ? MPI_UNDEFINED : (bytes / size) * elements_of(*this) + tally.elements;
}

} // namespace warren::datatype
