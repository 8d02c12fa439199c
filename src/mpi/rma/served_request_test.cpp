#include "mpi/rma/served_request.hpp"

#include <random>

#include <gtest/gtest.h>

namespace warren::rma {
namespace {

using Bytes = std::vector<std::byte>;

void append(Bytes& to, const void* from, std::size_t bytes) {
    const auto* begin = static_cast<const std::byte*>(from);
    to.insert(to.end(), begin, begin + bytes);
}

// A request for one piece, with so much data.
Bytes request_of(ServedHead head, std::uint64_t bytes, std::size_t data_bytes) {
    head.pieces = 1;
    head.bytes = bytes;
    const ServedPiece piece = {.address = 4096, .bytes = bytes};
    Bytes request;
    append(request, &head, sizeof head);
    append(request, &piece, sizeof piece);
    request.resize(request.size() + data_bytes, std::byte{7});
    return request;
}

bool is_sound(const Bytes& request) {
    return ServedRequest(request).is_sound();
}

ServedHead sum_of(MPI_Datatype type) {
    ServedHead head;
    head.kind = ServedKind::accumulate;
    head.operation = static_cast<std::uint8_t>(coll::OpKind::sum);
    head.basic =
        static_cast<std::uint8_t>(&datatype::basic(type) - datatype::predefined_table.data());
    return head;
}

TEST(ServedRequest, OfEachKindIsTaken) {
    ServedHead head;
    EXPECT_TRUE(is_sound(request_of(head, 16, 0)));
    head.kind = ServedKind::write;
    EXPECT_TRUE(is_sound(request_of(head, 16, 16)));
    head.kind = ServedKind::compare_and_swap;
    EXPECT_TRUE(is_sound(request_of(head, 8, 16)));
    EXPECT_TRUE(is_sound(request_of(sum_of(MPI_INT64_T), 16, 16)));
    head = sum_of(MPI_INT64_T);
    head.operation = static_cast<std::uint8_t>(coll::OpKind::no_op);
    EXPECT_TRUE(is_sound(request_of(head, 16, 0)));
}

TEST(ServedRequest, CutAtAnyByteOrTooLongIsRefused) {
    ServedHead head;
    head.kind = ServedKind::write;
    const Bytes request = request_of(head, 32, 32);
    for (std::size_t bytes = 0; bytes < request.size(); ++bytes) {
        const Bytes cut(request.begin(), request.begin() + static_cast<std::ptrdiff_t>(bytes));
        ASSERT_FALSE(is_sound(cut)) << bytes;
    }
    Bytes longer = request;
    longer.resize(request.size() + 1);
    EXPECT_FALSE(is_sound(longer));
}

TEST(ServedRequest, WithWhatDoesNotExistIsRefused) {
    ServedHead head = sum_of(MPI_INT64_T);
    EXPECT_FALSE(is_sound(request_of(head, 12, 12))); // no whole elements
    head.operation = 200;
    EXPECT_FALSE(is_sound(request_of(head, 16, 16)));
    head.operation = 0;
    EXPECT_FALSE(is_sound(request_of(head, 16, 16)));
    head = sum_of(MPI_INT64_T);
    head.basic = 0; // MPI_DATATYPE_NULL
    EXPECT_FALSE(is_sound(request_of(head, 16, 16)));
    head = sum_of(MPI_BYTE);
    EXPECT_FALSE(is_sound(request_of(head, 16, 16))); // no operation of bytes
    head.kind = static_cast<ServedKind>(99);
    EXPECT_FALSE(is_sound(request_of(head, 16, 16)));
}

TEST(ServedRequest, OfPiecesWhoseSumOverflowsIsRefused) {
    ServedHead head;
    head.pieces = 2;
    head.bytes = 8;
    const ServedPiece pieces[2] = {{.address = 4096, .bytes = UINT64_MAX},
                                   {.address = 8192, .bytes = 9}};
    Bytes request;
    append(request, &head, sizeof head);
    append(request, pieces, sizeof pieces);
    EXPECT_FALSE(is_sound(request));
    EXPECT_FALSE(is_sound(request_of(ServedHead(), UINT64_MAX, 0)));
}

// A request that is taken can be read. Run it under AddressSanitizer.
TEST(ServedRequest, OfRandomBytesIsNeverReadBeyondItsEnd) {
    std::minstd_rand random(1);
    int taken = 0;
    std::uint64_t sum = 0;
    for (int turn = 0; turn < 100'000; ++turn) {
        Bytes request = request_of(sum_of(MPI_INT32_T), random() % 64, random() % 64);
        for (std::uint64_t changes = random() % 3; changes > 0; --changes) {
            request[random() % request.size()] = static_cast<std::byte>(random());
        }
        const ServedRequest its(request);
        if (its.is_sound() && !its.is_of_lock()) {
            ++taken;
            its.each([&](const std::byte*, std::uint64_t offset, std::size_t bytes) {
                for (std::size_t i = 0; its.head().kind == ServedKind::write && i < bytes; ++i) {
                    sum += static_cast<std::uint8_t>(its.data()[offset + i]);
                }
            });
        }
    }
    EXPECT_GT(taken, 100);
}

} // namespace
} // namespace warren::rma
