#include "datatype/layout.hpp"

#include "datatype/datatype.hpp"
#include "datatype/derived.hpp"

namespace warren::datatype {

namespace {

// Types of so few steps are written into the user's body, where their blocks may join others;
// larger ones are referred to.
constexpr std::size_t inline_steps = 4;

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
    if (steps.size() == 1 && steps[0].inner == nullptr && steps[0].count == 1) {
        strided(offset + steps[0].offset, type.size, count, stride);
        return;
    }
    if (count == 1 && steps.size() <= inline_steps) {
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
    if (steps.size() == 1 && stride == steps[0].count * steps[0].stride) {
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
    if (!body_->steps.empty()) {
        Step& last = body_->steps.back();
        if (last.inner == nullptr && last.bytes == bytes) {
            if (last.count == 1) {
                last.stride = offset - last.offset;
            }
            if (offset == last.offset + last.count * last.stride) {
                ++last.count;
                data_ += bytes;
                return;
            }
        }
    }
    push({.offset = offset,
          .stride = bytes,
          .count = 1,
          .bytes = bytes,
          .start = 0,
          .inner = nullptr});
}

void LayoutBuilder::push(const Step& step) {
    flush();
    if (body_->steps.size() == step_limit) {
        too_large_ = true;
        return;
    }
    if (step.inner == nullptr && step.count > 1 && !body_->steps.empty()) {
        Step& last = body_->steps.back();
        if (last.inner == nullptr && last.bytes == step.bytes && last.stride == step.stride &&
            last.count > 1 && step.offset == last.offset + last.count * last.stride) {
            last.count += step.count;
            data_ += step.count * step.bytes;
            return;
        }
    }
    body_->steps.push_back(step);
    body_->steps.back().start = data_;
    data_ += step.count * step.bytes;
}

std::shared_ptr<const Body> LayoutBuilder::finish() {
    flush();
    if (body_->steps.empty()) {
        return nullptr;
    }
    body_->steps.shrink_to_fit();
    body_->inner.shrink_to_fit();
    return std::shared_ptr<const Body>(std::move(body_));
}

} // namespace warren::datatype
