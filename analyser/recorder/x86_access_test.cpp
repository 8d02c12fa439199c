#include "analyser/recorder/x86_access.hpp"

#include <gtest/gtest.h>
#include <initializer_list>
#include <vector>

namespace warren::locality {
namespace {

Access of(std::initializer_list<int> code) {
    std::vector<std::uint8_t> bytes;
    for (const int byte : code) {
        bytes.push_back(static_cast<std::uint8_t>(byte));
    }
    bytes.resize(15); // what follows in memory
    return access_of(bytes.data(), bytes.size());
}

// Instructions as the assembler encodes them, each beside a similar one that reads.
TEST(X86Access, TellsStoresFromLoads) {
    EXPECT_EQ(of({0x89, 0x07}), Access::write);                   // mov %eax,(%rdi)
    EXPECT_EQ(of({0x8B, 0x07}), Access::read);                    // mov (%rdi),%eax
    EXPECT_EQ(of({0x48, 0x89, 0x07}), Access::write);             // mov %rax,(%rdi)
    EXPECT_EQ(of({0x66, 0x89, 0x07}), Access::write);             // mov %ax,(%rdi)
    EXPECT_EQ(of({0x88, 0x07}), Access::write);                   // mov %al,(%rdi)
    EXPECT_EQ(of({0xC6, 0x07, 0x01}), Access::write);             // movb $1,(%rdi)
    EXPECT_EQ(of({0x48, 0xC7, 0x07, 1, 0, 0, 0}), Access::write); // movq $1,(%rdi)
    EXPECT_EQ(of({0x0F, 0xB6, 0x07}), Access::read);              // movzbl (%rdi),%eax
    EXPECT_EQ(of({0x83, 0x07, 0x01}), Access::write);             // addl $1,(%rdi)
    EXPECT_EQ(of({0x83, 0x3F, 0x01}), Access::read);              // cmpl $1,(%rdi)
    EXPECT_EQ(of({0x01, 0x07}), Access::write);                   // add %eax,(%rdi)
    EXPECT_EQ(of({0x03, 0x07}), Access::read);                    // add (%rdi),%eax
    EXPECT_EQ(of({0x39, 0x07}), Access::read);                    // cmp %eax,(%rdi)
    EXPECT_EQ(of({0x85, 0x07}), Access::read);                    // test %eax,(%rdi)
    EXPECT_EQ(of({0xFF, 0x07}), Access::write);                   // incl (%rdi)
    EXPECT_EQ(of({0xFF, 0x27}), Access::read);                    // jmp *(%rdi)
    EXPECT_EQ(of({0xF7, 0x1F}), Access::write);                   // negl (%rdi)
    EXPECT_EQ(of({0xF7, 0x27}), Access::read);                    // mull (%rdi)
    EXPECT_EQ(of({0xF0, 0x0F, 0xC1, 0x07}), Access::write);       // lock xadd %eax,(%rdi)
    EXPECT_EQ(of({0xF0, 0x0F, 0xB1, 0x0F}), Access::write);       // lock cmpxchg %ecx,(%rdi)
    EXPECT_EQ(of({0x87, 0x07}), Access::write);                   // xchg %eax,(%rdi)
    EXPECT_EQ(of({0x0F, 0x94, 0x07}), Access::write);             // sete (%rdi)
    EXPECT_EQ(of({0x50}), Access::write);                         // push %rax
    EXPECT_EQ(of({0x58}), Access::read);                          // pop %rax
    EXPECT_EQ(of({0xE8, 0, 0, 0, 0}), Access::write);             // call
    EXPECT_EQ(of({0xC3}), Access::read);                          // ret
}

TEST(X86Access, KnowsVectors) {
    EXPECT_EQ(of({0x0F, 0x11, 0x07}), Access::write);                   // movups %xmm0,(%rdi)
    EXPECT_EQ(of({0x0F, 0x10, 0x07}), Access::read);                    // movups (%rdi),%xmm0
    EXPECT_EQ(of({0x66, 0x0F, 0xE7, 0x07}), Access::write);             // movntdq
    EXPECT_EQ(of({0xF3, 0x0F, 0x7E, 0x07}), Access::read);              // movq (%rdi),%xmm0
    EXPECT_EQ(of({0x66, 0x0F, 0xD6, 0x07}), Access::write);             // movq %xmm0,(%rdi)
    EXPECT_EQ(of({0xF2, 0x0F, 0x11, 0x07}), Access::write);             // movsd %xmm0,(%rdi)
    EXPECT_EQ(of({0xF2, 0x0F, 0x58, 0x07}), Access::read);              // addsd (%rdi),%xmm0
    EXPECT_EQ(of({0xC5, 0xFC, 0x11, 0x07}), Access::write);             // vmovups %ymm0,(%rdi)
    EXPECT_EQ(of({0xC5, 0xFC, 0x10, 0x07}), Access::read);              // vmovups (%rdi),%ymm0
    EXPECT_EQ(of({0xC5, 0xFD, 0xE7, 0x07}), Access::write);             // vmovntdq
    EXPECT_EQ(of({0xC4, 0xE2, 0x75, 0x2E, 0x07}), Access::write);       // vmaskmovps to memory
    EXPECT_EQ(of({0xC4, 0xE2, 0x75, 0x2C, 0x07}), Access::read);        // vmaskmovps from it
    EXPECT_EQ(of({0xC4, 0xE3, 0x7D, 0x19, 0x07, 0x01}), Access::write); // vextractf128
    EXPECT_EQ(of({0xC4, 0xE2, 0xF5, 0xB8, 0x07}), Access::read);        // vfmadd231pd (%rdi)
    EXPECT_EQ(of({0x62, 0xF1, 0xFD, 0x48, 0x11, 0x07}), Access::write); // vmovupd %zmm0,(%rdi)
    EXPECT_EQ(of({0x62, 0xF1, 0xFD, 0x48, 0x10, 0x07}), Access::read);  // vmovupd (%rdi),%zmm0
    EXPECT_EQ(of({0x62, 0xF1, 0xFE, 0x28, 0x7F, 0x07}), Access::write); // vmovdqu64 %ymm16,…
    EXPECT_EQ(of({0x62, 0xF2, 0xFD, 0x49, 0xA2, 0x04, 0x0F}), Access::write); // vscatterdpd
    EXPECT_EQ(of({0x62, 0xF2, 0xFD, 0x49, 0x92, 0x04, 0x0F}), Access::read);  // vgatherdpd
    EXPECT_EQ(of({0x62, 0xF2, 0xFD, 0x49, 0x8A, 0x07}), Access::write);       // vcompresspd
    EXPECT_EQ(of({0x62, 0xF2, 0xFD, 0x49, 0x88, 0x07}), Access::read);        // vexpandpd
}

TEST(X86Access, DecidesByTheAddressWhereThereAreTwoOperands) {
    const Access moves = of({0xF3, 0xA4}); // rep movsb
    EXPECT_EQ(moves, Access::string_move);
    EXPECT_TRUE(writes(moves, 0x5000, 0x9000, 0x5000, 0));
    EXPECT_FALSE(writes(moves, 0x9000, 0x9000, 0x5000, 0));
    EXPECT_EQ(of({0xF3, 0xAA}), Access::write); // rep stosb
    EXPECT_EQ(of({0xF3, 0xA6}), Access::read);  // rep cmpsb
    const Access push = of({0xFF, 0x37});       // push (%rdi)
    EXPECT_TRUE(writes(push, 0x7FF8, 0, 0x5000, 0x8000));
    EXPECT_FALSE(writes(push, 0x5000, 0, 0x5000, 0x8000));
}

TEST(X86Access, DoesNotKnowWhatIsCutOff) {
    const std::uint8_t prefix[] = {0x66, 0x0F};
    EXPECT_EQ(access_of(prefix, 2), Access::unknown);
    EXPECT_EQ(access_of(prefix, 0), Access::unknown);
}

} // namespace
} // namespace warren::locality
