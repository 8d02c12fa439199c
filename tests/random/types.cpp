#include "types.hpp"

#include "report.hpp"
#include "type_parts.hpp"

#include <algorithm>

namespace programs {

namespace {

std::set<std::string> avoided;

const std::vector<Basic>& basics() {
    static const std::vector<Basic> all = {
        {"char", MPI_CHAR, 1, 1, 1},
        {"byte", MPI_BYTE, 1, 1, 1},
        {"short", MPI_SHORT, 2, 2, 2},
        {"int", MPI_INT, 4, 4, 4},
        {"unsigned", MPI_UNSIGNED, 4, 4, 4},
        {"int", MPI_INT, 4, 4, 4},
        {"long", MPI_LONG, 8, 8, 8},
        {"float", MPI_FLOAT, 4, 4, 4},
        {"double", MPI_DOUBLE, 8, 8, 8},
        {"double", MPI_DOUBLE, 8, 8, 8},
        {"uint16", MPI_UINT16_T, 2, 2, 2},
        {"int64", MPI_INT64_T, 8, 8, 8},
        {"float complex", MPI_C_FLOAT_COMPLEX, 8, 4, 8},
        {"double complex", MPI_C_DOUBLE_COMPLEX, 16, 8, 16},
        {"long double", MPI_LONG_DOUBLE, 16, 16, 10},
        {"aint", MPI_AINT, 8, 8, 8},
    };
    return all;
}

Offset down(Offset bytes, int alignment) {
    return bytes - (bytes % alignment + alignment) % alignment;
}
Offset up(Offset bytes, int alignment) {
    return -down(-bytes, alignment);
}

// A run of elements of `type` at a displacement.
struct Run {
    Offset at;
    long elements;
    const Type* type;
};

TypePtr from_runs(const std::vector<Run>& runs, std::string text) {
    auto made = std::make_shared<Type>();
    bool first = true;
    made->units = 0;
    for (const Run& run : runs) {
        const Type& type = *run.type;
        made->alignment = std::max(made->alignment, type.alignment);
        made->units += static_cast<int>(run.elements) * type.units;
        if (run.elements == 0) {
            continue;
        }
        const Offset lower = run.at + type.lower;
        const Offset upper = run.at + (run.elements - 1) * type.extent() + type.upper;
        made->lower = first ? lower : std::min(made->lower, lower);
        made->upper = first ? upper : std::max(made->upper, upper);
        first = false;
        for (long i = 0; i < run.elements; ++i) {
            for (const Leaf& leaf : type.leaves) {
                made->leaves.push_back({run.at + i * type.extent() + leaf.offset, leaf.basic});
            }
        }
    }
    made->text = std::move(text);
    return made;
}

void find_true_bounds(Type& type) {
    bool first = true;
    for (const Leaf& leaf : type.leaves) {
        const Offset end = leaf.offset + leaf.basic->size;
        type.true_lower = first ? leaf.offset : std::min(type.true_lower, leaf.offset);
        type.true_upper = first ? end : std::max(type.true_upper, end);
        first = false;
    }
}

bool overlaps(const Type& type, long count) {
    std::vector<std::pair<Offset, Offset>> intervals;
    for (long i = 0; i < count; ++i) {
        for (const Leaf& leaf : type.leaves) {
            const Offset at = i * type.extent() + leaf.offset;
            intervals.emplace_back(at, at + leaf.basic->size);
        }
    }
    std::sort(intervals.begin(), intervals.end());
    for (std::size_t i = 1; i < intervals.size(); ++i) {
        if (intervals[i].first < intervals[i - 1].second) {
            return true;
        }
    }
    return false;
}

// Gives `type` other bounds; `old` loses its handle.
void resize(Draw& draw, Type& type, MPI_Datatype old, Offset lower, Offset extent, bool freed) {
    if (draw.one_in(3)) {
        MUST(MPI_Type_create_resized_c(old, lower, extent, &type.handle));
    } else {
        MUST(MPI_Type_create_resized(old, lower, extent, &type.handle));
    }
    if (freed) {
        MUST(MPI_Type_free(&old));
    }
    type.lower = lower;
    type.upper = lower + extent;
}

// Where `lengths` blocks may stand, in elements, without overlapping: in any order, with gaps.
Ints spread(Draw& draw, const Ints& lengths) {
    Ints places(lengths.size());
    Ints order = draw.permutation(static_cast<int>(lengths.size()));
    if (draw.one_in(2)) {
        std::sort(order.begin(), order.end());
    }
    int cursor = draw.between(-3, 5);
    const int gap = draw.between(0, 3);
    for (int block : order) {
        places[static_cast<std::size_t>(block)] = cursor;
        cursor += lengths[static_cast<std::size_t>(block)] + draw.between(0, gap);
    }
    return places;
}

// Parts of which `total` is the sum; some may be 0.
Ints partition(Draw& draw, int total) {
    Ints parts;
    const int most = draw.between(1, 6);
    while (total > 0) {
        const int part =
            static_cast<int>(parts.size()) + 1 >= most ? total : draw.between(0, total);
        parts.push_back(part);
        total -= part;
    }
    return parts;
}

TypePtr unit_layout(Draw& draw, const Unit& unit) {
    if (unit.basics.size() == 1) {
        return make_basic(unit.basics[0]);
    }
    const int n = static_cast<int>(unit.basics.size());
    std::vector<Run> runs(static_cast<std::size_t>(n));
    std::vector<TypePtr> parts;
    std::vector<MPI_Datatype> handles;
    Aints displacements(static_cast<std::size_t>(n));
    for (const Basic* basic : unit.basics) {
        parts.push_back(make_basic(basic));
        handles.push_back(basic->type);
    }
    Offset cursor = 16 * draw.between(-1, 1);
    for (int place : draw.permutation(n)) {
        const auto i = static_cast<std::size_t>(place);
        const Basic* basic = unit.basics[i];
        cursor = up(cursor, basic->alignment);
        displacements[i] = cursor;
        runs[i] = {cursor, 1, parts[i].get()};
        cursor += basic->size + draw.between(0, 1) * 8;
    }
    TypePtr made = from_runs(runs, "struct of basic types");
    made->units = 1;
    const Ints ones(static_cast<std::size_t>(n), 1);
    MPI_Datatype plain;
    MUST(MPI_Type_create_struct(n, ones.data(), displacements.data(), handles.data(), &plain));
    const Offset lower = down(made->lower, made->alignment);
    resize(draw, *made, plain, lower,
           up(made->upper - lower, made->alignment) + made->alignment * draw.between(0, 1), true);
    return made;
}

TypePtr contiguous(Draw& draw, const Unit& unit, int units, int depth) {
    const int count = draw.divisor(units);
    const TypePtr child = build(draw, unit, units / count, depth + 1);
    TypePtr made = from_runs({{0, count, child.get()}},
                             "contiguous(" + std::to_string(count) + ", " + child->text + ")");
    if (draw.one_in(3)) {
        MUST(MPI_Type_contiguous_c(count, child->handle, &made->handle));
    } else {
        MUST(MPI_Type_contiguous(count, child->handle, &made->handle));
    }
    return made;
}

TypePtr vector(Draw& draw, const Unit& unit, int units, int depth) {
    const int elements = draw.divisor(units), length = draw.divisor(elements);
    const int count = elements / length;
    const TypePtr child = build(draw, unit, units / elements, depth + 1);
    int stride = length + draw.between(0, 3);
    if (draw.one_in(5)) {
        stride = -stride;
    }
    const bool in_bytes = draw.one_in(2);
    const Offset extra = in_bytes ? child->alignment * draw.between(0, 3) : 0;
    const Offset step = stride * child->extent() + (stride < 0 ? -extra : extra);
    std::vector<Run> runs;
    for (int i = 0; i < count; ++i) {
        runs.push_back({i * step, length, child.get()});
    }
    TypePtr made =
        from_runs(runs, std::string(in_bytes ? "hvector(" : "vector(") + std::to_string(count) +
                            ", " + std::to_string(length) + ", " +
                            std::to_string(in_bytes ? step : stride) + ", " + child->text + ")");
    const bool large = draw.one_in(3);
    if (in_bytes && large) {
        MUST(MPI_Type_create_hvector_c(count, length, step, child->handle, &made->handle));
    } else if (in_bytes) {
        MUST(MPI_Type_create_hvector(count, length, step, child->handle, &made->handle));
    } else if (large) {
        MUST(MPI_Type_vector_c(count, length, stride, child->handle, &made->handle));
    } else {
        MUST(MPI_Type_vector(count, length, stride, child->handle, &made->handle));
    }
    return made;
}

TypePtr indexed(Draw& draw, const Unit& unit, int units, int depth) {
    const int elements = draw.divisor(units);
    const TypePtr child = build(draw, unit, units / elements, depth + 1);
    const bool equal = draw.one_in(2), in_bytes = draw.one_in(2), large = draw.one_in(3);
    Ints lengths;
    if (equal) {
        const int length = draw.divisor(elements);
        lengths.assign(static_cast<std::size_t>(elements / length), length);
    } else {
        lengths = partition(draw, elements);
    }
    const Ints places = spread(draw, lengths);
    const int n = static_cast<int>(lengths.size());
    Aints bytes;
    std::vector<Run> runs;
    const Offset shift = in_bytes ? child->alignment * draw.between(-2, 2) : 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        bytes.push_back(places[i] * child->extent() + shift);
        runs.push_back({bytes.back(), lengths[i], child.get()});
    }
    TypePtr made =
        from_runs(runs, std::string(in_bytes ? "hindexed" : "indexed") + (equal ? "_block(" : "(") +
                            std::to_string(n) + ", " + child->text + ")");
    const MPI_Datatype old = child->handle;
    MPI_Datatype* result = &made->handle;
    const Counts wide_lengths = wide(lengths), wide_places = wide(places), wide_bytes = wide(bytes);
    if (equal && in_bytes && large) {
        MUST(MPI_Type_create_hindexed_block_c(n, lengths[0], wide_bytes.data(), old, result));
    } else if (equal && in_bytes) {
        MUST(MPI_Type_create_hindexed_block(n, lengths[0], bytes.data(), old, result));
    } else if (equal && large) {
        MUST(MPI_Type_create_indexed_block_c(n, lengths[0], wide_places.data(), old, result));
    } else if (equal) {
        MUST(MPI_Type_create_indexed_block(n, lengths[0], places.data(), old, result));
    } else if (in_bytes && large) {
        MUST(MPI_Type_create_hindexed_c(n, wide_lengths.data(), wide_bytes.data(), old, result));
    } else if (in_bytes) {
        MUST(MPI_Type_create_hindexed(n, lengths.data(), bytes.data(), old, result));
    } else if (large) {
        MUST(MPI_Type_indexed_c(n, wide_lengths.data(), wide_places.data(), old, result));
    } else {
        MUST(MPI_Type_indexed(n, lengths.data(), places.data(), old, result));
    }
    return made;
}

// Members of different layouts; resized, because the padding at its end is the library's choice.
TypePtr structure(Draw& draw, const Unit& unit, int units, int depth) {
    const Ints parts = partition(draw, units);
    std::vector<TypePtr> children;
    std::vector<Run> runs(parts.size());
    std::vector<MPI_Datatype> handles;
    Ints lengths;
    Aints places(parts.size());
    std::string text = "struct(";
    for (int part : parts) {
        const int length = part == 0 ? 0 : draw.divisor(part);
        children.push_back(build(draw, unit, part == 0 ? 1 : part / length, depth + 1));
        handles.push_back(children.back()->handle);
        lengths.push_back(length);
        text += std::to_string(length) + " × " + children.back()->text + "; ";
    }
    int alignment = 1;
    for (const TypePtr& child : children) {
        alignment = std::max(alignment, child->alignment);
    }
    Offset cursor = alignment * draw.between(-2, 2);
    for (int place : draw.permutation(static_cast<int>(parts.size()))) {
        const auto i = static_cast<std::size_t>(place);
        const Type& child = *children[i];
        // Aligned also where the first leaf isn't the beginning.
        places[i] = up(cursor - child.true_lower, alignment);
        runs[i] = {places[i], lengths[i], &child};
        if (lengths[i] > 0) {
            cursor = places[i] + (lengths[i] - 1) * child.extent() + child.true_upper;
        }
        cursor += alignment * draw.between(0, 1);
    }
    TypePtr made = from_runs(runs, text + ")");
    made->alignment = alignment;
    MPI_Datatype plain;
    const int n = static_cast<int>(parts.size());
    if (draw.one_in(3)) {
        MUST(MPI_Type_create_struct_c(n, wide(lengths).data(), wide(places).data(), handles.data(),
                                      &plain));
    } else {
        MUST(MPI_Type_create_struct(n, lengths.data(), places.data(), handles.data(), &plain));
    }
    find_true_bounds(*made);
    const Offset lower = down(made->true_lower, alignment);
    resize(draw, *made, plain, lower, up(made->true_upper - lower, alignment), true);
    return made;
}

// Larger bounds, or a copy.
TypePtr resized(Draw& draw, const Unit& unit, int units, int depth) {
    const TypePtr child = build(draw, unit, units, depth + 1);
    const bool copy = draw.one_in(4);
    TypePtr made =
        from_runs({{0, 1, child.get()}}, (copy ? "dup(" : "resized(") + child->text + ")");
    made->units = child->units;
    if (copy) {
        MUST(MPI_Type_dup(child->handle, &made->handle));
    } else {
        const Offset step = child->alignment;
        resize(draw, *made, child->handle, child->lower + step * draw.between(-3, 3),
               child->extent() + step * draw.between(0, 4), false);
    }
    return made;
}

// Extent ≥ span of the leaves: elements at steps of the extent don't overlap.
} // namespace

TypePtr build(Draw& draw, const Unit& unit, int units, int depth) {
    TypePtr made;
    if (depth > 3 && units == 1) {
        made = unit_layout(draw, unit);
    } else if (depth > 3) {
        const TypePtr child = unit_layout(draw, unit);
        made = from_runs({{0, units, child.get()}}, std::to_string(units) + " × " + child->text);
        MUST(MPI_Type_contiguous(units, child->handle, &made->handle));
    } else {
        switch (units == 1 && !draw.one_in(4) ? 8 : draw.below(8)) {
        case 0:
            made = contiguous(draw, unit, units, depth);
            break;
        case 1:
            made = vector(draw, unit, units, depth);
            break;
        case 2:
        case 3:
            made = indexed(draw, unit, units, depth);
            break;
        case 4:
            made = structure(draw, unit, units, depth);
            break;
        case 5:
            made = avoided.count("subarray") > 0 ? contiguous(draw, unit, units, depth)
                                                 : subarray(draw, unit, units, depth);
            break;
        case 6:
            made = avoided.count("darray") > 0 ? contiguous(draw, unit, units, depth)
                                               : darray(draw, unit, units, depth);
            break;
        case 7:
            made = resized(draw, unit, units, depth);
            break;
        default:
            made = unit_layout(draw, unit);
        }
    }
    find_true_bounds(*made);
    if (made->extent() < made->true_upper - made->true_lower) {
        // Bounds of its parts that lie within: put right, parts of others must not overlap.
        resize(draw, *made, made->handle, made->true_lower,
               up(made->true_upper - made->true_lower, made->alignment), true);
        made->text += " resized";
    }
    return made;
}

namespace {

// Elements within each other's gaps, as a matrix is transposed.
void interleave(Draw& draw, TypePtr& type, long count) {
    for (int attempt = 0; attempt < 4; ++attempt) {
        Type narrow;
        narrow.leaves = type->leaves;
        const Offset extent = type->alignment * draw.between(1, 8);
        narrow.upper = extent;
        if (extent < type->extent() && !overlaps(narrow, count)) {
            resize(draw, *type, type->handle, type->lower, extent, true);
            type->text += " interleaved";
            return;
        }
    }
}

void compare_with_model(const Type& type) {
    int size = -1;
    MPI_Count bytes = -1, lower = -1, extent = -1, true_lower = -1, true_extent = -1;
    MPI_Aint short_lower = -1, short_extent = -1;
    MUST(MPI_Type_size(type.handle, &size));
    MUST(MPI_Type_size_c(type.handle, &bytes));
    MUST(MPI_Type_get_extent(type.handle, &short_lower, &short_extent));
    MUST(MPI_Type_get_extent_c(type.handle, &lower, &extent));
    MUST(MPI_Type_get_true_extent_c(type.handle, &true_lower, &true_extent));
    if (size != type.bytes() || bytes != type.bytes() || lower != type.lower ||
        short_lower != lower || extent != type.extent() || short_extent != extent ||
        true_lower != type.true_lower || true_extent != type.true_upper - type.true_lower) {
        fail("%s: expected size %td, bounds %td + %td, true bounds %td + %td, got %lld, %lld + "
             "%lld, %lld + %lld",
             type.text.c_str(), type.bytes(), type.lower, type.extent(), type.true_lower,
             type.true_upper - type.true_lower, static_cast<long long>(bytes),
             static_cast<long long>(lower), static_cast<long long>(extent),
             static_cast<long long>(true_lower), static_cast<long long>(true_extent));
    }
}

} // namespace

Offset Type::bytes() const {
    Offset sum = 0;
    for (const Leaf& leaf : leaves) {
        sum += leaf.basic->size;
    }
    return sum;
}

void Type::release() {
    if (!predefined && handle != MPI_DATATYPE_NULL) {
        MUST(MPI_Type_free(&handle));
    }
}

void avoid_types(const std::set<std::string>& kinds) {
    avoided = kinds;
}

Unit draw_unit(Draw& draw) {
    Unit unit;
    const int members = draw.one_in(4) ? draw.between(2, 4) : 1;
    for (int i = 0; i < members; ++i) {
        unit.basics.push_back(&draw.of(basics()));
    }
    return unit;
}

TypePtr make_basic(const Basic* basic) {
    auto made = std::make_shared<Type>();
    made->handle = basic->type;
    made->leaves = {{0, basic}};
    made->upper = made->true_upper = basic->size;
    made->alignment = basic->alignment;
    made->predefined = true;
    made->text = basic->name;
    return made;
}

TypePtr make_type(Draw& draw, const Unit& unit, int units, long count) {
    if (units == 1 && unit.basics.size() == 1 && draw.one_in(2)) {
        return make_basic(unit.basics[0]);
    }
    // Not one whose gaps would need all memory.
    constexpr int largest_share_of_gaps = 20;
    TypePtr made = build(draw, unit, units, 0);
    for (int attempt = 0;
         attempt < 6 && made->extent() > largest_share_of_gaps * made->bytes() + 2000 / count;
         ++attempt) {
        made = attempt < 5 ? build(draw, unit, units, 0) : contiguous(draw, unit, units, 4);
    }
    find_true_bounds(*made);
    if (made->predefined) {
        return made;
    }
    if (count > 1 && draw.one_in(6) && avoided.count("interleaved") == 0) {
        interleave(draw, made, count);
    }
    MUST(MPI_Type_commit(&made->handle));
    compare_with_model(*made);
    return made;
}

TypePtr at_address(const Type& type, long count, void* base) {
    MPI_Aint address = 0;
    MUST(MPI_Get_address(base, &address));
    auto made = std::make_shared<Type>();
    const int length = static_cast<int>(count);
    MUST(MPI_Type_create_hindexed(1, &length, &address, type.handle, &made->handle));
    MUST(MPI_Type_commit(&made->handle));
    return made;
}

} // namespace programs
