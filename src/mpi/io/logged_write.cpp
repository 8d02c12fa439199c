#include "mpi/io/logged_write.hpp"

#include <algorithm>
#include <cstring>
#include <unistd.h>

#include "base/futex.hpp"
#include "mpi/io/each_block.hpp"

namespace warren::io {

namespace {

enum Turn : std::uint32_t { is_free, is_taken, is_awaited };

std::byte* pieces_of(node::WriteEntry& entry) {
    return reinterpret_cast<std::byte*>(&entry) + page_bytes;
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
    const std::uint64_t begin = segment.header().directory[node::write_entries].offset +
                                rank * segment.unit_bytes(node::write_entries);
    if (is_alone || !segment.commit(begin, page_bytes)) {
        return;
    }
    entry_ =
        reinterpret_cast<node::WriteEntry*>(segment.unit(node::write_entries, std::uint64_t{rank}));
    segment.slot(rank).logs_writes.store(1, std::memory_order_release);
}

// Commits the first `bytes` of the pieces, unless they are. By the thread that has the turn.
bool WriteLog::commit(std::uint64_t bytes) const {
    const auto pages = static_cast<std::uint32_t>(whole_pages(bytes) / page_bytes);
    const std::uint32_t had = entry_->committed_pages;
    if (pages <= had) {
        return true;
    }
    const std::uint64_t begin = segment_->header().directory[node::write_entries].offset +
                                rank_ * segment_->unit_bytes(node::write_entries) + page_bytes;
    if (!segment_->commit(begin + had * page_bytes, (pages - had) * page_bytes)) {
        return false;
    }
    entry_->committed_pages = pages;
    return true;
}

void LoggedWrite::take_turn() const {
    std::atomic<std::uint32_t>& turn = log_.entry_->turn;
    std::uint32_t seen = is_free;
    if (turn.compare_exchange_strong(seen, is_taken, std::memory_order_acquire)) [[likely]] {
        return;
    }
    while (turn.exchange(is_awaited, std::memory_order_acquire) != is_free) {
        futex_wait(turn, is_awaited);
    }
}

void LoggedWrite::end_turn() const {
    std::atomic<std::uint32_t>& turn = log_.entry_->turn;
    if (turn.exchange(is_free, std::memory_order_release) == is_awaited) [[unlikely]] {
        futex_wake(turn, 1);
    }
}

bool LoggedWrite::enter_file() const {
    const std::string& path = file_.full_path();
    node::WriteEntry& entry = *log_.entry_;
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
    node::WriteEntry& entry = *log_.entry_;
    std::byte* const pieces = pieces_of(entry);
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
        if (!log_.commit(used + needed)) {
            result = Result::impossible;
            return false;
        }
        std::memcpy(pieces + used, &piece, sizeof piece);
        data.type->pack_part(data.base, data.count, at, bytes, pieces + used + sizeof piece);
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
    entry.pieces_bytes = used;
    return result;
}

LoggedWrite::Result LoggedWrite::enter_chosen(const View& view, const datatype::Buffer& data,
                                              MPI_Count first, MPI_Count record) {
    if (record == 0 && static_cast<std::uint64_t>(data.bytes()) > node::logged_data_bytes) {
        return Result::too_large;
    }
    take_turn();
    has_turn_ = true;
    if (!enter_file()) {
        return Result::impossible;
    }
    const Result result = enter_pieces(view, data, first, record);
    if (result == Result::entered && log_.entry_->pieces_bytes > 0) {
        // Whoever outlives this process sees its stores in their order, and so a whole entry.
        log_.entry_->mark.store(node::valid_write, std::memory_order_release);
    }
    return result;
}

LoggedWrite::~LoggedWrite() {
    if (has_turn_) {
        log_.entry_->mark.store(0, std::memory_order_release);
        end_turn();
    }
}

} // namespace warren::io
