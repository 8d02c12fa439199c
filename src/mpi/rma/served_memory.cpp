#include "mpi/rma/served_memory.hpp"

#include <algorithm>
#include <cstring>

#include "mpi/rma/tuning.hpp"
#include "mpi/rma/window.hpp"

namespace warren::rma {

namespace {

void append(std::vector<std::byte>& to, const void* from, std::size_t bytes) {
    to.resize(to.size() + bytes);
    std::memcpy(to.data() + to.size() - bytes, from, bytes);
}

} // namespace

std::uint8_t index_of(const datatype::Datatype& basic) {
    return static_cast<std::uint8_t>(&basic - datatype::predefined_table.data());
}

std::vector<std::byte> served_request(const Buffer& layout, ServedHead& head, MPI_Count first,
                                      MPI_Count bytes, MPI_Count unit, const void* data,
                                      const void* tail, MPI_Count& done) {
    std::vector<iovec> pieces(pieces_per_request);
    const auto list = [&](MPI_Count wanted) {
        head.pieces = static_cast<std::uint32_t>(layout.type->pieces(
            layout.base, layout.count, first, wanted, pieces.data(), pieces.size(), done));
    };
    list(std::min(bytes, data_bytes_per_request / unit * unit));
    if (done % unit != 0) {
        list(done / unit * unit);
    }
    head.bytes = static_cast<std::uint64_t>(done);
    std::vector<std::byte> request;
    request.reserve(sizeof head + head.pieces * sizeof(ServedPiece) + 2 * head.bytes);
    append(request, &head, sizeof head);
    for (std::uint32_t i = 0; i < head.pieces; ++i) {
        const ServedPiece piece = {.address = reinterpret_cast<std::uint64_t>(pieces[i].iov_base),
                                   .bytes = pieces[i].iov_len};
        append(request, &piece, sizeof piece);
    }
    for (const void* part : {data, tail}) {
        if (part != nullptr) {
            append(request, part, head.bytes);
        }
    }
    return request;
}

Error ServedMemory::ask(ServedHead head, MPI_Count first, MPI_Count bytes, MPI_Count unit,
                        const void* data, const void* tail, void* answer, MPI_Count& done) {
    const std::vector<std::byte> request =
        served_request(layout_, head, first, bytes, unit, data, tail, done);
    std::vector<std::byte> got(sizeof(ServedAnswer) + (answer != nullptr ? head.bytes : 0));
    if (Error error = server_.ask(window_, target_, request, got.data(), got.size())) {
        return error;
    }
    ServedAnswer its;
    std::memcpy(&its, got.data(), sizeof its);
    if (its.error_class != MPI_SUCCESS) {
        return fail(its.error_class,
                    "rank %d refuses: the target's place is not within its memory of the window",
                    target_);
    }
    if (answer != nullptr) {
        std::memcpy(answer, got.data() + sizeof its, head.bytes);
    }
    return {};
}

Error ServedMemory::read(void* to, MPI_Count first, MPI_Count bytes) {
    const ServedHead head = {.kind = ServedKind::read};
    for (MPI_Count at = 0; at < bytes;) {
        MPI_Count done = 0;
        if (Error error = ask(head, first + at, bytes - at, 1, nullptr, nullptr,
                              static_cast<std::byte*>(to) + at, done)) {
            return error;
        }
        at += done;
    }
    return {};
}

Error ServedMemory::write(const void* from, MPI_Count first, MPI_Count bytes) {
    const ServedHead head = {.kind = ServedKind::write};
    for (MPI_Count at = 0; at < bytes;) {
        MPI_Count done = 0;
        if (Error error = ask(head, first + at, bytes - at, 1,
                              static_cast<const std::byte*>(from) + at, nullptr, nullptr, done)) {
            return error;
        }
        at += done;
    }
    return {};
}

Error ServedMemory::accumulate(const Accumulating& what, void* before, MPI_Count first,
                               MPI_Count bytes) {
    const ServedHead head = {.kind = ServedKind::accumulate,
                             .fetches = before != nullptr,
                             .operation = static_cast<std::uint8_t>(what.op.kind()),
                             .basic = index_of(what.basic)};
    for (MPI_Count at = 0; at < bytes;) {
        MPI_Count done = 0;
        const void* own = changes_target(what.op) ? what.own.packed() + at : nullptr;
        void* result = before != nullptr ? static_cast<std::byte*>(before) + at : nullptr;
        if (Error error =
                ask(head, first + at, bytes - at, what.basic.size, own, nullptr, result, done)) {
            return error;
        }
        at += done;
    }
    return {};
}

Error ServedMemory::compare_and_swap(const void* from, const void* compared, void* before) {
    const MPI_Count bytes = layout_.type->size;
    MPI_Count done = 0;
    return ask({.kind = ServedKind::compare_and_swap, .basic = index_of(*layout_.type)}, 0, bytes,
               bytes, from, compared, before, done);
}

} // namespace warren::rma
