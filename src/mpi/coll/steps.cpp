#include "mpi/coll/steps.hpp"

#include <new>

namespace warren::coll {

namespace {

// The entry point treats all causes of memory that runs out alike.
void require(Error error) {
    if (error) {
        error.drop();
        throw std::bad_alloc();
    }
}

} // namespace

Steps::~Steps() {
    for (const datatype::Datatype* type : kept_) {
        datatype::release(*type);
    }
}

void Steps::keep(const datatype::Datatype& type) {
    if (!type.predefined) {
        kept_.push_front(&type);
        datatype::retain(type);
    }
}

Buffer Steps::scratch(MPI_Count count, const datatype::Datatype& type) {
    Scratch& made = scratch_.emplace_front();
    require(made.allocate(count, type));
    return made.buffer();
}

std::byte* Steps::scratch(MPI_Count bytes) {
    Scratch& made = scratch_.emplace_front();
    require(made.allocate(bytes));
    return made.data();
}

} // namespace warren::coll
