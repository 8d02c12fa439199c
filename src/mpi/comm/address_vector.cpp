#include "mpi/comm/address_vector.hpp"

#include <bit>

namespace warren::comm {

std::uint32_t AddressVector::slot_bits_for(std::uint32_t ranks_per_node) {
    return static_cast<std::uint32_t>(std::bit_width(ranks_per_node - 1));
}

RankMap AddressVector::filled(std::uint32_t nodes, std::uint32_t per_node) {
    // As blocks: numbers are left out behind the last slot of a node.
    const std::int64_t gap = (std::int64_t{1} << slot_bits_for(per_node)) - per_node;
    RankForm form = RankForm::affine(0, 1, static_cast<int>(nodes * per_node));
    form.levels = 1;
    form.level[0] = {per_node, gap};
    form.normalise();
    return RankMap::of(form);
}

RankMap AddressVector::dealt(std::uint32_t nodes, std::uint32_t per_node) {
    const std::int64_t step = std::int64_t{1} << slot_bits_for(per_node);
    RankForm form = RankForm::affine(0, step, static_cast<int>(nodes * per_node));
    form.levels = 1;
    form.level[0] = {nodes, 1 - step * nodes};
    form.normalise();
    return RankMap::of(form);
}

} // namespace warren::comm
