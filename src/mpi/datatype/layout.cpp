#include "mpi/datatype/layout.hpp"

#include <algorithm>
#include <numeric>

#include "mpi/datatype/datatype.hpp"
#include "mpi/datatype/derived.hpp"
#include "mpi/datatype/tuning.hpp"

namespace warren::datatype {

namespace {

// Marks a step with a list until finish(), since the list may move in memory before.
constexpr MPI_Count list_in_the_making = 0;

bool is_loose(const Step& step) {
    return step.inner == nullptr && step.places == nullptr && step.count <= chance_repeats;
}

// Whether a body's steps can stand in another body, at another offset.
bool is_small(const Body& body) {
    return body.steps.size() <= inline_steps && body.places.empty();
}

} // namespace

std::shared_ptr<const Body> body_of(const Datatype& type) {
    if (type.layout != nullptr) {
        return type.derived->layout;
    }
    if (!type.predefined || type.size == type.true_extent) {
        return nullptr;
    }
    const BasicParts parts = parts_of(type.basic);
    auto body = std::make_shared<Body>();
    body->steps = {{.offset = 0,
                    .stride = parts.first,
                    .count = 1,
                    .bytes = parts.first,
                    .start = 0,
                    .inner = nullptr},
                   {.offset = parts.second_offset,
                    .stride = parts.second,
                    .count = 1,
                    .bytes = parts.second,
                    .start = parts.first,
                    .inner = nullptr}};
    body->blocks = 2;
    return body;
}

void LayoutBuilder::repeat(const Datatype& type, MPI_Count offset, MPI_Count count,
                           MPI_Count stride) {
    if (count == 0 || type.size == 0) {
        return;
    }
    const std::shared_ptr<const Body> body = body_of(type);
    if (body == nullptr) {
        strided(offset, type.size, count, stride);
        return;
    }
    const std::vector<Step>& steps = body->steps;
    if (body->is_block()) {
        strided(offset + steps[0].offset, type.size, count, stride);
        return;
    }
    if (count == 1 && is_small(*body)) {
        for (const Step& step : steps) {
            if (step.inner == nullptr) {
                strided(offset + step.offset, step.bytes, step.count, step.stride);
            } else {
                Step copy = step;
                copy.offset += offset;
                push(copy);
            }
        }
        body_->inner.insert(body_->inner.end(), body->inner.begin(), body->inner.end());
        return;
    }
    if (steps.size() == 1 && steps[0].places == nullptr &&
        stride == steps[0].count * steps[0].stride) {
        // The repeats continue those inside: one longer loop.
        Step longer = steps[0];
        longer.offset += offset;
        longer.count *= count;
        push(longer);
        body_->inner.insert(body_->inner.end(), body->inner.begin(), body->inner.end());
        return;
    }
    push({.offset = offset,
          .stride = stride,
          .count = count,
          .bytes = type.size,
          .start = 0,
          .inner = body.get()});
    if (body_->inner.empty() || body_->inner.back() != body) {
        body_->inner.push_back(body);
    }
}

void LayoutBuilder::strided(MPI_Count offset, MPI_Count bytes, MPI_Count count, MPI_Count stride) {
    if (count == 1 || stride == bytes) {
        block(offset, bytes * count);
        return;
    }
    push({.offset = offset,
          .stride = stride,
          .count = count,
          .bytes = bytes,
          .start = 0,
          .inner = nullptr});
}

void LayoutBuilder::block(MPI_Count offset, MPI_Count bytes) {
    if (block_bytes_ != 0 && block_offset_ + block_bytes_ == offset) {
        block_bytes_ += bytes;
        return;
    }
    flush();
    block_offset_ = offset;
    block_bytes_ = bytes;
}

// Ends the last block: it continues an even spacing of blocks, or is a step of its own.
void LayoutBuilder::flush() {
    if (block_bytes_ == 0) {
        return;
    }
    const MPI_Count offset = block_offset_;
    const MPI_Count bytes = block_bytes_;
    block_bytes_ = 0;
    if (extend_last(offset, bytes)) {
        return;
    }
    push({.offset = offset,
          .stride = bytes,
          .count = 1,
          .bytes = bytes,
          .start = 0,
          .inner = nullptr});
}

// Makes the block the next of the last step's even spacing, if it is.
bool LayoutBuilder::extend_last(MPI_Count offset, MPI_Count bytes) {
    if (body_->steps.empty()) {
        return false;
    }
    Step& last = body_->steps.back();
    if (last.inner != nullptr || last.places != nullptr || last.bytes != bytes) {
        return false;
    }
    if (last.count == 1) {
        last.stride = offset - last.offset;
    }
    if (offset != last.offset + last.count * last.stride) {
        return false;
    }
    ++last.count;
    data_ += bytes;
    return true;
}

// Moves irregular blocks at the end of the body into a list of places: the last step into the list
// before it, or as many as begin one. Before another step follows: so none of them can still grow
// into a loop.
void LayoutBuilder::settle() {
    std::vector<Step>& steps = body_->steps;
    std::size_t loose = 0;
    MPI_Count unit = 0;
    MPI_Count largest = 0;
    while (loose < list_steps && loose < steps.size() &&
           is_loose(steps[steps.size() - 1 - loose])) {
        const MPI_Count bytes = steps[steps.size() - 1 - loose].bytes;
        unit = unit == 0 ? bytes : std::gcd(unit, bytes);
        largest = std::max(largest, bytes);
        ++loose;
    }
    if (loose == 0) {
        return;
    }
    std::size_t first = steps.size() - loose;
    if (first > 0 && steps[first - 1].places != nullptr) {
        // Never more than one behind a list that takes it.
        Step& list = steps[first - 1];
        const MPI_Count bytes = steps[first].bytes;
        if (loose == 1 && bytes % list.bytes == 0 && bytes / list.bytes <= list_ratio) {
            list_blocks(list, steps[first]);
            steps.pop_back();
            return;
        }
    }
    if (loose < list_steps || largest / unit > list_ratio) {
        return;
    }
    Step list{.offset = 0,
              .stride = 0,
              .count = 0,
              .bytes = unit,
              .start = steps[first].start,
              .inner = nullptr,
              .places = &list_in_the_making};
    for (; first < steps.size(); ++first) {
        list_blocks(list, steps[first]);
    }
    steps.resize(steps.size() - loose);
    steps.push_back(list);
}

// Adds a step's blocks to a list, in pieces of the list's size.
void LayoutBuilder::list_blocks(Step& list, const Step& step) {
    for (MPI_Count i = 0; i < step.count; ++i) {
        for (MPI_Count piece = 0; piece < step.bytes; piece += list.bytes) {
            body_->places.push_back(step.offset + i * step.stride + piece);
            ++list.count;
        }
    }
    if (body_->places.size() > place_limit) {
        too_large_ = true;
    }
}

void LayoutBuilder::push(const Step& step) {
    flush();
    if (too_large_) {
        return;
    }
    if (body_->steps.size() == step_limit) {
        too_large_ = true;
        return;
    }
    if (step.inner == nullptr && step.count > 1 && !body_->steps.empty()) {
        Step& last = body_->steps.back();
        if (last.inner == nullptr && last.places == nullptr && last.bytes == step.bytes &&
            last.stride == step.stride && last.count > 1 &&
            step.offset == last.offset + last.count * last.stride) {
            last.count += step.count;
            data_ += step.count * step.bytes;
            return;
        }
    }
    settle();
    body_->steps.push_back(step);
    body_->steps.back().start = data_;
    data_ += step.count * step.bytes;
}

std::shared_ptr<const Body> LayoutBuilder::finish() {
    flush();
    settle();
    if (body_->steps.empty()) {
        return nullptr;
    }
    body_->steps.shrink_to_fit();
    body_->inner.shrink_to_fit();
    body_->places.shrink_to_fit();
    const MPI_Count* places = body_->places.data();
    for (Step& step : body_->steps) {
        if (step.places != nullptr) {
            step.places = places;
            places += step.count;
        }
        body_->blocks += step.count * (step.inner != nullptr ? step.inner->blocks : 1);
    }
    return std::shared_ptr<const Body>(std::move(body_));
}

} // namespace warren::datatype
