// Random datatypes that are parts of arrays, of one process and of several.
#include "report.hpp"
#include "type_parts.hpp"

#include <algorithm>

namespace programs {

namespace {

// The elements of an array of `full` that have these indices in each dimension.
TypePtr part_of_array(const Type& child, const Ints& full, const std::vector<Ints>& indices,
                      int order, std::string text) {
    const std::size_t dimensions = full.size();
    auto made = std::make_shared<Type>();
    made->alignment = child.alignment;
    made->text = std::move(text) + child.text + ")";
    long whole = 1, elements = 1;
    Aints weight(dimensions);
    Ints fastest_first(dimensions);
    for (std::size_t d = 0; d < dimensions; ++d) {
        const std::size_t dimension = order == MPI_ORDER_C ? dimensions - 1 - d : d;
        fastest_first[d] = static_cast<int>(dimension);
        weight[dimension] = whole;
        whole *= full[dimension];
        elements *= static_cast<long>(indices[dimension].size());
    }
    for (long element = 0; element < elements; ++element) {
        long rest = element, at = 0;
        for (int dimension : fastest_first) {
            const Ints& along = indices[static_cast<std::size_t>(dimension)];
            const auto length = static_cast<long>(along.size());
            at += along[static_cast<std::size_t>(rest % length)] *
                  weight[static_cast<std::size_t>(dimension)];
            rest /= length;
        }
        for (const Leaf& leaf : child.leaves) {
            made->leaves.push_back({at * child.extent() + leaf.offset, leaf.basic});
        }
    }
    made->units = static_cast<int>(elements) * child.units;
    made->lower = 0;
    made->upper = whole * child.extent();
    return made;
}

// Factors of which n is the product.
Ints factors(Draw& draw, int n, int most) {
    Ints list;
    const int dimensions = draw.between(1, most);
    for (int d = 0; d + 1 < dimensions; ++d) {
        list.push_back(draw.divisor(n));
        n /= list.back();
    }
    list.push_back(n);
    draw.shuffle(list);
    return list;
}

} // namespace

TypePtr subarray(Draw& draw, const Unit& unit, int units, int depth) {
    const int elements = draw.divisor(units);
    const TypePtr child = build(draw, unit, units / elements, depth + 1);
    const Ints part = factors(draw, elements, 4);
    const int order = draw.one_in(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    Ints full, starts;
    std::vector<Ints> indices;
    for (int length : part) {
        starts.push_back(draw.between(0, 2));
        full.push_back(length + starts.back() + draw.between(0, 2));
        indices.emplace_back();
        for (int i = 0; i < length; ++i) {
            indices.back().push_back(starts.back() + i);
        }
    }
    TypePtr made = part_of_array(*child, full, indices, order,
                                 "subarray(" + std::to_string(full.size()) + " dimensions, ");
    const int n = static_cast<int>(full.size());
    if (draw.one_in(3)) {
        MUST(MPI_Type_create_subarray_c(n, wide(full).data(), wide(part).data(),
                                        wide(starts).data(), order, child->handle, &made->handle));
    } else {
        MUST(MPI_Type_create_subarray(n, full.data(), part.data(), starts.data(), order,
                                      child->handle, &made->handle));
    }
    return made;
}

TypePtr darray(Draw& draw, const Unit& unit, int units, int depth) {
    const int elements = draw.divisor(units);
    const TypePtr child = build(draw, unit, units / elements, depth + 1);
    const Ints part = factors(draw, elements, 3);
    const int order = draw.one_in(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    const int n = static_cast<int>(part.size());
    Ints full, distributions, arguments, grid;
    std::vector<Ints> indices(part.size());
    int processes = 1, rank = 0;
    for (std::size_t d = 0; d < part.size(); ++d) {
        const int mine = part[d];
        const int across = draw.one_in(4) ? 1 : draw.between(1, 3), place = draw.below(across);
        processes *= across;
        rank = rank * across + place;
        grid.push_back(across);
        const int how = across == 1 && draw.one_in(2) ? 0 : draw.between(1, 3);
        int block = mine, size = 0;
        if (how == 0) {
            distributions.push_back(MPI_DISTRIBUTE_NONE);
            arguments.push_back(MPI_DISTRIBUTE_DFLT_DARG);
            size = mine;
        } else if (how == 1) {
            distributions.push_back(MPI_DISTRIBUTE_BLOCK);
            // A block of as many as the ABI's value of "default" cannot be asked for.
            const bool asked = draw.one_in(2) && mine != MPI_DISTRIBUTE_DFLT_DARG;
            arguments.push_back(asked ? mine : MPI_DISTRIBUTE_DFLT_DARG);
            size = mine * across;
            if (asked) {
                size = draw.between(mine * (place + 1), mine * across);
            }
        } else {
            block = how == 2 ? 1 : draw.between(1, 4);
            distributions.push_back(MPI_DISTRIBUTE_CYCLIC);
            arguments.push_back(how == 2 ? MPI_DISTRIBUTE_DFLT_DARG : block);
        }
        for (int i = 0, found = 0; found < mine; ++i) {
            if (i / block % across == place) {
                indices[d].push_back(i);
                ++found;
            }
            size = std::max(size, i + 1);
        }
        full.push_back(size);
    }
    std::string text = "darray(";
    for (std::size_t d = 0; d < part.size(); ++d) {
        static const char* const hows[] = {"none", "block", "cyclic"};
        const int how = distributions[d] == MPI_DISTRIBUTE_NONE    ? 0
                        : distributions[d] == MPI_DISTRIBUTE_BLOCK ? 1
                                                                   : 2;
        text += std::to_string(part[d]) + " of " + std::to_string(full[d]) + " " + hows[how] + " " +
                (arguments[d] == MPI_DISTRIBUTE_DFLT_DARG ? "" : std::to_string(arguments[d])) +
                " over " + std::to_string(grid[d]) + ", ";
    }
    TypePtr made = part_of_array(*child, full, indices, order,
                                 text + "rank " + std::to_string(rank) +
                                     (order == MPI_ORDER_C ? ", " : ", Fortran's, "));
    if (draw.one_in(3)) {
        MUST(MPI_Type_create_darray_c(processes, rank, n, wide(full).data(), distributions.data(),
                                      arguments.data(), grid.data(), order, child->handle,
                                      &made->handle));
    } else {
        MUST(MPI_Type_create_darray(processes, rank, n, full.data(), distributions.data(),
                                    arguments.data(), grid.data(), order, child->handle,
                                    &made->handle));
    }
    return made;
}

} // namespace programs
