#include "mpi/transport/fabric/frame.hpp"

#include "base/invariant.hpp"

namespace warren::transport::fabric {

FrameReader::FrameReader(std::span<const std::byte> frame, std::uint64_t secret)
    : frame_(frame), fault_(check(secret)) {}

FrameReader::Fault FrameReader::check(std::uint64_t secret) {
    if (frame_.size() < sizeof header_ || frame_.size() > frame_bytes_limit) {
        return Fault::length;
    }
    std::memcpy(&header_, frame_.data(), sizeof header_);
    if (header_.magic != frame_magic) {
        return Fault::magic;
    }
    if (header_.secret != secret) {
        return Fault::secret;
    }
    if (header_.bytes != frame_.size()) {
        return Fault::length;
    }
    std::size_t at = sizeof header_;
    for (std::uint32_t cells = 0; cells < header_.cells; ++cells) {
        CellHeader cell;
        if (frame_.size() - at < sizeof cell) {
            return Fault::cells;
        }
        std::memcpy(&cell, frame_.data() + at, sizeof cell);
        const std::size_t limit = cell.block != 0 ? block_bytes_limit : inline_bytes;
        if (cell.block > 1 || cell.bytes > limit ||
            cell_bytes_of(cell.block != 0, cell.bytes) > frame_.size() - at) {
            return Fault::cells;
        }
        at += cell_bytes_of(cell.block != 0, cell.bytes);
    }
    return at == frame_.size() ? Fault::none : Fault::cells;
}

bool FrameReader::next(FrameCell& cell) {
    WARREN_INVARIANT(fault_ == Fault::none, "frames: only what was checked is read");
    if (at_ == frame_.size()) {
        return false;
    }
    const std::byte* const begin = frame_.data() + at_;
    std::memcpy(&cell.header, begin, sizeof cell.header);
    const bool block = cell.header.block != 0;
    cell.extra = block ? begin + sizeof(CellHeader) : nullptr;
    cell.data = begin + sizeof(CellHeader) + (block ? extra_bytes : 0);
    at_ += cell_bytes_of(block, cell.header.bytes);
    return true;
}

const char* text_of(FrameReader::Fault fault) {
    switch (fault) {
    case FrameReader::Fault::none:
        return "nothing";
    case FrameReader::Fault::length:
        return "its length is wrong";
    case FrameReader::Fault::magic:
        return "it is no frame of this version of Warren";
    case FrameReader::Fault::secret:
        return "it is of another job";
    case FrameReader::Fault::cells:
        return "its contents are damaged";
    }
    return "";
}

} // namespace warren::transport::fabric
