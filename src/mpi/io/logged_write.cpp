#include "mpi/io/logged_write.hpp"

#include <algorithm>
#include <cstring>
#include <unistd.h>

#include "base/futex.hpp"
#include "mpi/io/each_block.hpp"

namespace warren::io {

namespace {

enum Turn : std::uint32_t { is_free, is_taken, is_awaited };

// In the segment.
std::uint64_t place_of(const node::Segment& segment, std::uint32_t rank, std::uint32_t number) {
    return segment.header().directory[node::write_entries].offset +
           node::write_entry_unit(rank, number) * segment.unit_bytes(node::write_entries);
}

node::WriteEntry* entry_of(const node::Segment& segment, std::uint32_t rank, std::uint32_t number) {
    return reinterpret_cast<node::WriteEntry*>(
        segment.unit(node::write_entries, node::write_entry_unit(rank, number)));
}

std::byte* pieces_of(node::WriteEntry& entry) {
    return reinterpret_cast<std::byte*>(&entry) + page_bytes;
}

// Words without a call, because most pieces of a scattered write have a few.
void copy_piece(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    switch (bytes) {
    case 2:
        std::memcpy(to, from, 2);
        return;
    case 4:
        std::memcpy(to, from, 4);
        return;
    case 8:
        std::memcpy(to, from, 8);
        return;
    default:
        std::memcpy(to, from, bytes);
    }
}

struct Block {
    std::uint64_t offset; // in the file
    MPI_Count at;         // in the data
    MPI_Count bytes;
};

// Hands on the records of a block, which are one after the other in the data, that lie in several
// pages, or those of their bytes that are in the block. add(offset, at, bytes): false stops.
template <typename Add>
bool each_torn_record(const Block& block, MPI_Count record, Add add) {
    const MPI_Count block_end = block.at + block.bytes;
    const std::uint64_t file_end = block.offset + static_cast<std::uint64_t>(block.bytes);
    MPI_Count end = block.at; // of the last
    for (std::uint64_t page = (block.offset / page_bytes + 1) * page_bytes; page < file_end;
         page += page_bytes) {
        const MPI_Count place = block.at + static_cast<MPI_Count>(page - block.offset);
        if (place < end || place % record == 0) {
            continue;
        }
        const MPI_Count begin = std::max(place / record * record, block.at);
        end = std::min((place / record + 1) * record, block_end);
        if (!add(block.offset + static_cast<std::uint64_t>(begin - block.at), begin, end - begin)) {
            return false;
        }
    }
    return true;
}

} // namespace

WriteLog::WriteLog(const node::Segment& segment, std::uint32_t rank)
    : segment_(&segment), rank_(rank) {
    const bool is_alone = segment.header().launcher_pid == static_cast<std::uint32_t>(getpid());
    if (is_alone || !segment.commit(place_of(segment, rank, 0), page_bytes)) {
        return;
    }
    entries_ = entry_of(segment, rank, 0);
    entries_->committed_pages[0] = std::max(entries_->committed_pages[0], 1u);
    segment.slot(rank).logs_writes.store(1, std::memory_order_release);
}

// Commits the first `bytes` of an entry, unless they are. By the thread that has its turn.
bool WriteLog::commit(std::uint32_t number, std::uint64_t bytes) const {
    const auto pages = static_cast<std::uint32_t>(whole_pages(bytes) / page_bytes);
    std::uint32_t& had = entries_->committed_pages[number];
    if (pages <= had) {
        return true;
    }
    if (!segment_->commit(place_of(*segment_, rank_, number) + had * page_bytes,
                          (pages - had) * page_bytes)) {
        return false;
    }
    had = pages;
    return true;
}

// The number of an entry that nobody else has.
std::uint32_t WriteLog::take_turn() const {
    for (std::uint32_t number = 0; number < node::entries_per_rank; ++number) {
        std::uint32_t seen = is_free;
        if (entries_->turns[number].compare_exchange_strong(seen, is_taken,
                                                            std::memory_order_acquire)) [[likely]] {
            return number;
        }
    }
    constexpr std::uint32_t last = node::entries_per_rank - 1;
    std::atomic<std::uint32_t>& turn = entries_->turns[last];
    while (turn.exchange(is_awaited, std::memory_order_acquire) != is_free) {
        futex_wait(turn, is_awaited);
    }
    return last;
}

void WriteLog::end_turn(std::uint32_t number) const {
    std::atomic<std::uint32_t>& turn = entries_->turns[number];
    if (turn.exchange(is_free, std::memory_order_release) == is_awaited) [[unlikely]] {
        futex_wake(turn, 1);
    }
}

bool LoggedWrite::enter_file() const {
    const std::string& path = file_.full_path();
    node::WriteEntry& entry = *entry_;
    if (path.empty() || path.size() >= node::logged_path_bytes) {
        return false;
    }
    entry.device = file_.device();
    entry.number = file_.number();
    entry.locks_system = locks_system_ ? 1 : 0;
    entry.path_bytes = static_cast<std::uint32_t>(path.size() + 1);
    std::memcpy(static_cast<void*>(&entry + 1), path.c_str(), path.size() + 1);
    return true;
}

// `record`: 0: all are entered.
LoggedWrite::Result LoggedWrite::enter_pieces(const View& view, const datatype::Buffer& data,
                                              MPI_Count first, MPI_Count record) const {
    std::byte* const pieces = pieces_of(*entry_);
    const auto* const source =
        static_cast<const std::byte*>(data.type->one_piece(data.base, data.count));
    std::uint64_t used = 0;
    Result result = Result::entered;
    const auto add = [&](std::uint64_t offset, MPI_Count at, MPI_Count bytes) {
        const node::WrittenPiece piece = {.offset = offset,
                                          .bytes = static_cast<std::uint64_t>(bytes)};
        const std::uint64_t room = node::logged_pieces_bytes - used;
        if (piece.bytes > room || node::logged_bytes(piece.bytes) > room) {
            result = Result::too_large;
            return false;
        }
        const std::uint64_t needed = node::logged_bytes(piece.bytes);
        if (!log_.commit(number_, page_bytes + used + needed)) {
            result = Result::impossible;
            return false;
        }
        std::memcpy(pieces + used, &piece, sizeof piece);
        std::byte* const to = pieces + used + sizeof piece;
        if (source != nullptr) {
            copy_piece(to, source + at, piece.bytes);
        } else {
            data.type->pack_part(data.base, data.count, at, bytes, to);
        }
        used += needed;
        return true;
    };
    const auto add_block = [&](std::uint64_t offset, MPI_Count at, MPI_Count bytes) {
        return record == 0 ? add(offset, at, bytes)
                           : each_torn_record({offset, at, bytes}, record, add);
    };
    EachBlock action(add_block);
    view.walk(first, data.bytes(), action);
    action.flush();
    entry_->pieces_bytes = used;
    return result;
}

LoggedWrite::Result LoggedWrite::enter_chosen(const View& view, const datatype::Buffer& data,
                                              MPI_Count first, MPI_Count record) {
    if (record == 0 && !may_fit(view, data.bytes())) {
        return Result::too_large;
    }
    number_ = log_.take_turn();
    if (!log_.commit(number_, page_bytes)) {
        return Result::impossible;
    }
    entry_ = entry_of(*log_.segment_, log_.rank_, number_);
    if (!enter_file()) {
        return Result::impossible;
    }
    const Result result = enter_pieces(view, data, first, record);
    if (result == Result::entered && entry_->pieces_bytes > 0) {
        // Whoever outlives this process sees its stores in their order, and so a whole entry.
        entry_->mark.store(node::valid_write, std::memory_order_release);
    }
    return result;
}

LoggedWrite::~LoggedWrite() {
    if (entry_ != nullptr) {
        entry_->mark.store(0, std::memory_order_release);
    }
    if (number_ < node::entries_per_rank) {
        log_.end_turn(number_);
    }
}

} // namespace warren::io
