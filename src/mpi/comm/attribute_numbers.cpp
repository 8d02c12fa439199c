#include "mpi/comm/attribute_numbers.hpp"

namespace warren::comm {

MPI_Aint* AttributeNumbers::make(MPI_Aint number) {
    auto place = std::make_unique<MPI_Aint>(number);
    MPI_Aint* address = place.get();
    numbers_.emplace(address, Number{.place = std::move(place)});
    return address;
}

MPI_Aint* AttributeNumbers::find(void* value) {
    const auto at = numbers_.find(value);
    return at != numbers_.end() ? at->second.place.get() : nullptr;
}

void AttributeNumbers::retain(void* value) {
    if (const auto at = numbers_.find(value); at != numbers_.end()) {
        ++at->second.attributes;
    }
}

void AttributeNumbers::release(void* value) {
    const auto at = numbers_.find(value);
    if (at != numbers_.end() && --at->second.attributes == 0) {
        numbers_.erase(at);
    }
}

void AttributeNumbers::free_unused(void* value) {
    const auto at = numbers_.find(value);
    if (at != numbers_.end() && at->second.attributes == 0) {
        numbers_.erase(at);
    }
}

} // namespace warren::comm
