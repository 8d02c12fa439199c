#include "mpi/rma/served_request.hpp"

#include "mpi/rma/combine.hpp"

namespace warren::rma {

bool ServedRequest::is_sound() const {
    if (memory_.size() < sizeof head_ || head_.kind > ServedKind::unlock ||
        head_.pieces > pieces_per_request) {
        return false;
    }
    const std::size_t before = sizeof head_ + head_.pieces * sizeof(ServedPiece);
    if (memory_.size() < before) {
        return false;
    }
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < head_.pieces; ++i) {
        if (__builtin_add_overflow(bytes, piece(i).bytes, &bytes)) {
            return false;
        }
    }
    return bytes == head_.bytes && bytes <= static_cast<std::uint64_t>(data_bytes_per_request) &&
           memory_.size() - before == data_bytes() && combines();
}

// Counts the data behind the pieces.
std::uint64_t ServedRequest::data_bytes() const {
    switch (head_.kind) {
    case ServedKind::write:
        return head_.bytes;
    case ServedKind::accumulate:
        return changes_target(op()) ? head_.bytes : 0;
    case ServedKind::compare_and_swap:
        return 2 * head_.bytes;
    default:
        return 0;
    }
}

// Whether an accumulate operation is one of whole elements that its type has.
bool ServedRequest::combines() const {
    if (head_.kind != ServedKind::accumulate) {
        return true;
    }
    const datatype::Datatype& basic = datatype::predefined_table[head_.basic];
    if (!basic.predefined || basic.size <= 0 || op().kind() == coll::OpKind::null ||
        op().kind() >= coll::OpKind::user ||
        head_.bytes % static_cast<std::uint64_t>(basic.size) != 0) {
        return false;
    }
    if (op().kind() == coll::OpKind::replace || !changes_target(op())) {
        return true;
    }
    Error undefined = op().check(basic);
    const bool defined = !undefined;
    undefined.drop();
    return defined;
}

} // namespace warren::rma
