#include "mpi/comm/info.hpp"

#include <algorithm>

namespace warren::comm {

const std::string* Info::find(std::string_view key) const {
    for (const auto& [own_key, value] : entries_) {
        if (own_key == key) {
            return &value;
        }
    }
    return nullptr;
}

void Info::set(std::string_view key, std::string_view value) {
    for (auto& [own_key, own_value] : entries_) {
        if (own_key == key) {
            own_value = value;
            return;
        }
    }
    entries_.emplace_back(key, value);
}

bool Info::remove(std::string_view key) {
    return std::erase_if(entries_, [&](const auto& entry) { return entry.first == key; }) != 0;
}

MPI_Info Infos::handle_of(const Info& info) const {
    return &info == &environment_ ? MPI_INFO_ENV
                                  : static_cast<MPI_Info>(LateHandleTable<Info>::handle_of(info));
}

MPI_Info Infos::of_integer(int integer) const {
    const auto bits = static_cast<std::uint32_t>(integer);
    if (bits < first_handle) {
        const auto handle = reinterpret_cast<MPI_Info>(std::uintptr_t{bits});
        return handle == MPI_INFO_ENV ? handle : MPI_INFO_NULL;
    }
    void* handle = made_.from_integer(bits);
    return handle != nullptr ? static_cast<MPI_Info>(handle) : MPI_INFO_NULL;
}

} // namespace warren::comm
