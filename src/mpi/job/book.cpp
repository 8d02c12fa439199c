#include "mpi/job/book.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi.h"
#include "mpi/job/mpiexec_bootstrap.hpp"

namespace warren::node {

namespace {

// The offsets of the indexes; 0: there is none yet.
struct BookHeader {
    std::uint32_t nodes;
    std::uint32_t unused;
    std::uint64_t names;
    std::uint64_t cards;
};

bool read_all(int descriptor, void* to, std::size_t bytes, std::uint64_t offset) {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
        const ssize_t done = pread(descriptor, at, bytes, static_cast<off_t>(offset));
        if (done == 0 || (done < 0 && errno != EINTR)) {
            return false;
        }
        if (done > 0) {
            at += done;
            bytes -= static_cast<std::size_t>(done);
            offset += static_cast<std::uint64_t>(done);
        }
    }
    return true;
}

Error write_all(int descriptor, const void* from, std::size_t bytes, std::uint64_t offset) {
    const auto* at = static_cast<const char*>(from);
    while (bytes > 0) {
        const ssize_t done = pwrite(descriptor, at, bytes, static_cast<off_t>(offset));
        if (done < 0 && errno != EINTR) {
            return fail(MPI_ERR_OTHER, "writing the book of the job's nodes: %s",
                        std::strerror(errno));
        }
        if (done > 0) {
            at += done;
            bytes -= static_cast<std::size_t>(done);
            offset += static_cast<std::uint64_t>(done);
        }
    }
    return {};
}

// Appends the parts and their index, then makes the index known at its place in the header.
Error write_edition(int descriptor, const std::vector<std::string>& parts,
                    std::size_t index_place) {
    struct stat status;
    if (fstat(descriptor, &status) != 0) {
        return fail(MPI_ERR_OTHER, "the book of the job's nodes: %s", std::strerror(errno));
    }
    const std::uint64_t index = (static_cast<std::uint64_t>(status.st_size) + 7) & ~7ULL;
    std::vector<std::uint64_t> offsets{index + (parts.size() + 1) * sizeof(std::uint64_t)};
    std::string text;
    for (const std::string& part : parts) {
        text += part;
        offsets.push_back(offsets.front() + text.size());
    }
    if (Error error =
            write_all(descriptor, offsets.data(), offsets.size() * sizeof(std::uint64_t), index)) {
        return error;
    }
    if (Error error = write_all(descriptor, text.data(), text.size(), offsets.front())) {
        return error;
    }
    return write_all(descriptor, &index, sizeof index, index_place);
}

} // namespace

Error Book::create(const std::vector<std::string>& names, int& descriptor) {
    descriptor = memfd_create("warren-book", MFD_CLOEXEC);
    if (descriptor < 0) {
        return fail(MPI_ERR_OTHER, "memfd_create of the book of the job's nodes: %s",
                    std::strerror(errno));
    }
    const BookHeader header = {
        .nodes = static_cast<std::uint32_t>(names.size()), .unused = 0, .names = 0, .cards = 0};
    if (Error error = write_all(descriptor, &header, sizeof header, 0)) {
        return error;
    }
    return write_edition(descriptor, names, offsetof(BookHeader, names));
}

Error Book::write_cards(const std::vector<std::string>& of_nodes) const {
    return write_edition(descriptor_, of_nodes, offsetof(BookHeader, cards));
}

std::string Book::read_part(std::size_t index_place, std::uint32_t node) const {
    BookHeader header;
    std::uint64_t index = 0;
    std::uint64_t bounds[2];
    if (descriptor_ < 0 || !read_all(descriptor_, &header, sizeof header, 0) ||
        node >= header.nodes || !read_all(descriptor_, &index, sizeof index, index_place) ||
        index == 0 ||
        !read_all(descriptor_, bounds, sizeof bounds, index + node * sizeof bounds[0]) ||
        bounds[1] < bounds[0]) {
        return "";
    }
    std::string text(bounds[1] - bounds[0], '\0');
    return read_all(descriptor_, text.data(), text.size(), bounds[0]) ? text : "";
}

std::string Book::name(std::uint32_t node) const {
    return read_part(offsetof(BookHeader, names), node);
}

std::vector<std::byte> Book::card(std::uint32_t node, std::uint32_t slot) const {
    return card_in(read_part(offsetof(BookHeader, cards), node), slot);
}

std::vector<std::byte> card_in(const std::string& records, std::uint32_t slot) {
    for (std::size_t at = 0; at < records.size();) {
        CardRecord record;
        std::memcpy(&record, records.data() + at, sizeof record);
        at += sizeof record;
        if (slot - record.first_slot < record.slots) {
            const auto* card = reinterpret_cast<const std::byte*>(records.data() + at);
            return {card, card + record.bytes};
        }
        at += record.bytes;
    }
    return {};
}

std::string collect_cards(const Segment& segment) {
    std::string text;
    std::size_t last = 0; // the last record's place
    std::string_view last_card;
    for (std::uint32_t slot = 0; slot < segment.ranks(); ++slot) {
        const std::uint32_t bytes = segment.at(card_lengths)[slot].load(std::memory_order_acquire);
        if (bytes == 0) {
            last_card = {};
            continue;
        }
        const std::string_view card(reinterpret_cast<const char*>(segment.unit(cards, slot)),
                                    bytes);
        if (card == last_card) {
            CardRecord record;
            std::memcpy(&record, text.data() + last, sizeof record);
            ++record.slots;
            std::memcpy(text.data() + last, &record, sizeof record);
            continue;
        }
        const CardRecord record = {.first_slot = slot, .slots = 1, .bytes = bytes};
        last = text.size();
        last_card = card;
        text.append(reinterpret_cast<const char*>(&record), sizeof record);
        text += card;
    }
    return text;
}

bool are_records(const std::string& records) {
    std::size_t at = 0;
    while (records.size() - at >= sizeof(CardRecord)) {
        CardRecord record;
        std::memcpy(&record, records.data() + at, sizeof record);
        at += sizeof record;
        if (record.bytes > records.size() - at || record.bytes > card_bytes) {
            return false;
        }
        at += record.bytes;
    }
    return at == records.size();
}

} // namespace warren::node
