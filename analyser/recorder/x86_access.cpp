#include "analyser/recorder/x86_access.hpp"

namespace warren::locality {

namespace {

// The bytes of an instruction. Bytes beyond the end are 0, and such a read is remembered.
class Code {
  public:
    Code(const std::uint8_t* bytes, std::size_t count) : bytes_(bytes), count_(count) {}

    unsigned next() {
        if (at_ >= count_) {
            short_ = true;
            return 0;
        }
        return bytes_[at_++];
    }
    unsigned peek() const { return at_ < count_ ? bytes_[at_] : 0U; }
    bool is_short() const { return short_; }

  private:
    const std::uint8_t* bytes_;
    std::size_t count_;
    std::size_t at_ = 0;
    bool short_ = false;
};

struct Prefixes {
    bool operand_size = false; // 66
    bool repeat = false;       // F3
    bool repeat_not = false;   // F2
};

Access written_if(bool condition) {
    return condition ? Access::write : Access::read;
}

// Maps 0F; `vector`: with a VEX or EVEX prefix, which keeps the opcodes of moves only.
Access of_two_bytes(unsigned opcode, unsigned operation, const Prefixes& prefixes, bool vector) {
    switch (opcode) {
    case 0x11: // moves of vectors: to memory
    case 0x13:
    case 0x17:
    case 0x29:
    case 0x2B:
    case 0x7F:
    case 0xD6:
    case 0xE7:
        return Access::write;
    case 0x7E: // movd and movq to memory, but with F3 it loads
        return written_if(!prefixes.repeat);
    case 0xAE: // fxsave, stmxcsr, xsave, xsaveopt; with 66 clwb and clflushopt write nothing
        return written_if(!prefixes.operand_size &&
                          (operation == 0 || operation == 3 || operation == 4 || operation == 6));
    default:
        break;
    }
    if (vector) {
        return Access::read;
    }
    switch (opcode) {
    case 0xA0: // push of fs and gs
    case 0xA8:
    case 0xA4: // double shifts
    case 0xA5:
    case 0xAC:
    case 0xAD:
    case 0xAB: // bts, btr, btc
    case 0xB3:
    case 0xBB:
    case 0xB0: // cmpxchg
    case 0xB1:
    case 0xC0: // xadd
    case 0xC1:
    case 0xC3: // movnti
        return Access::write;
    case 0xBA: // bts, btr, btc with a number; 4 is bt
        return written_if(operation >= 5);
    case 0xC7: // cmpxchg8b, xsavec, xsaves
        return written_if(operation == 1 || operation == 4 || operation == 5);
    case 0x00: // sldt, str
        return written_if(operation <= 1);
    case 0x01: // sgdt, sidt, smsw
        return written_if(operation == 0 || operation == 1 || operation == 4);
    default:
        return written_if(opcode >= 0x90 && opcode <= 0x9F); // setcc
    }
}

Access of_0f38(unsigned opcode, const Prefixes& prefixes, bool vex, bool evex) {
    if (vex) {
        return written_if(opcode == 0x2E || opcode == 0x2F || opcode == 0x8E); // masked moves
    }
    if (evex) {
        // Compression, scatters, and moves that narrow (F3).
        const bool narrows = prefixes.repeat && ((opcode >= 0x10 && opcode <= 0x15) ||
                                                 (opcode >= 0x20 && opcode <= 0x25) ||
                                                 (opcode >= 0x30 && opcode <= 0x35));
        return written_if(narrows || opcode == 0x63 || opcode == 0x8A || opcode == 0x8B ||
                          (opcode >= 0xA0 && opcode <= 0xA3));
    }
    // movbe to memory (with F2 it is crc32), movdiri.
    return written_if((opcode == 0xF1 && !prefixes.repeat_not) ||
                      (opcode == 0xF9 && !prefixes.operand_size));
}

// Extractions to memory, and vcvtps2ph.
Access of_0f3a(unsigned opcode, bool vex, bool evex) {
    const bool extracts = opcode >= 0x14 && opcode <= 0x17;
    const bool parts = (vex || evex) && (opcode == 0x19 || opcode == 0x39 || opcode == 0x1D);
    const bool more = evex && (opcode == 0x1B || opcode == 0x3B);
    return written_if(extracts || parts || more);
}

Access of_one_byte(unsigned opcode, unsigned operation) {
    if (opcode < 0x38 && (opcode & 7U) <= 1) { // add, or, adc, sbb, and, sub, xor to memory
        return Access::write;
    }
    if (opcode >= 0x50 && opcode <= 0x57) { // push
        return Access::write;
    }
    if (opcode >= 0xD8 && opcode <= 0xDF) { // x87
        switch (opcode) {
        case 0xD9: // fst, fstp, fnstenv, fnstcw
            return written_if(operation == 2 || operation == 3 || operation >= 6);
        case 0xDB: // fisttp, fist, fistp, fstp of 80 bits
            return written_if((operation >= 1 && operation <= 3) || operation == 7);
        case 0xDD: // fisttp, fst, fstp, fnsave, fnstsw
        case 0xDF: // fisttp, fist, fistp, fbstp, fistp of 64 bits
            return written_if((operation >= 1 && operation <= 3) || operation >= 6);
        default:
            return Access::read;
        }
    }
    switch (opcode) {
    case 0x68: // push of a number
    case 0x6A:
    case 0x86: // xchg
    case 0x87:
    case 0x88: // mov
    case 0x89:
    case 0x8C:
    case 0x8F: // pop to memory
    case 0x9C: // pushf
    case 0xA2: // mov to an address
    case 0xA3:
    case 0xAA: // stos
    case 0xAB:
    case 0xC0: // shifts
    case 0xC1:
    case 0xC6: // mov of a number
    case 0xC7:
    case 0xC8: // enter
    case 0xD0:
    case 0xD1:
    case 0xD2:
    case 0xD3:
    case 0xE8: // call
    case 0xFE: // inc, dec
        return Access::write;
    case 0x80: // with a number; 7 is cmp
    case 0x81:
    case 0x83:
        return written_if(operation != 7);
    case 0xA4: // movs
    case 0xA5:
        return Access::string_move;
    case 0xF6: // not, neg; the others read
    case 0xF7:
        return written_if(operation == 2 || operation == 3);
    case 0xFF: // inc, dec; call and push of memory; jmp
        if (operation <= 1) {
            return Access::write;
        }
        return operation == 4 || operation == 5 || operation == 7 ? Access::read
                                                                  : Access::push_memory;
    default:
        return Access::read;
    }
}

// Bits 3 to 5 of the byte behind the opcode.
unsigned operation_in(const Code& code) {
    return code.peek() >> 3U & 7U;
}

Prefixes of_field(unsigned field) {
    return {field == 1, field == 2, field == 3};
}

Access of_vex(Code& code, bool two_bytes) {
    const unsigned first = code.next();
    const unsigned map = two_bytes ? 1 : first & 0x1FU;
    const Prefixes prefixes = of_field((two_bytes ? first : code.next()) & 3U);
    const unsigned opcode = code.next();
    switch (map) {
    case 1:
        // kmov to memory; vldmxcsr reads and vstmxcsr writes.
        return opcode == 0x91 ? Access::write
                              : of_two_bytes(opcode, operation_in(code), prefixes, true);
    case 2:
        return of_0f38(opcode, prefixes, true, false);
    case 3:
        return of_0f3a(opcode, true, false);
    default:
        return Access::read;
    }
}

Access of_evex(Code& code) {
    const unsigned map = code.next() & 7U;
    const Prefixes prefixes = of_field(code.next() & 3U);
    code.next();
    const unsigned opcode = code.next();
    switch (map) {
    case 1:
        return of_two_bytes(opcode, operation_in(code), prefixes, true);
    case 2:
        return of_0f38(opcode, prefixes, false, true);
    case 3:
        return of_0f3a(opcode, false, true);
    case 5: // moves of half-precision numbers
        return written_if(opcode == 0x11 || opcode == 0x7E);
    default:
        return Access::read;
    }
}

Access decode(Code& code) {
    Prefixes prefixes;
    unsigned byte = code.next();
    for (bool more = true; more && !code.is_short();) {
        switch (byte) {
        case 0x66:
            prefixes.operand_size = true;
            break;
        case 0xF3:
            prefixes.repeat = true;
            break;
        case 0xF2:
            prefixes.repeat_not = true;
            break;
        case 0x26: // segments, address size, lock
        case 0x2E:
        case 0x36:
        case 0x3E:
        case 0x64:
        case 0x65:
        case 0x67:
        case 0xF0:
            break;
        default:
            more = false;
            continue;
        }
        byte = code.next();
    }
    if (byte >= 0x40 && byte <= 0x4F) { // REX
        byte = code.next();
    }
    if (byte == 0xC5 || byte == 0xC4) {
        return of_vex(code, byte == 0xC5);
    }
    if (byte == 0x62) {
        return of_evex(code);
    }
    if (byte != 0x0F) {
        return of_one_byte(byte, operation_in(code));
    }
    const unsigned second = code.next();
    if (second == 0x38) {
        return of_0f38(code.next(), prefixes, false, false);
    }
    if (second == 0x3A) {
        return of_0f3a(code.next(), false, false);
    }
    return of_two_bytes(second, operation_in(code), prefixes, false);
}

std::uint64_t distance(std::uint64_t one, std::uint64_t other) {
    return one < other ? other - one : one - other;
}

} // namespace

Access access_of(const std::uint8_t* code, std::size_t bytes) {
    Code reader(code, bytes);
    const Access access = decode(reader);
    return reader.is_short() ? Access::unknown : access;
}

bool writes(Access access, std::uint64_t address, std::uint64_t rsi, std::uint64_t rdi,
            std::uint64_t rsp) {
    constexpr std::uint64_t word = 8;
    switch (access) {
    case Access::write:
        return true;
    case Access::string_move:
        return distance(address, rdi) < distance(address, rsi);
    case Access::push_memory:
        return distance(address, rsp) <= word;
    default:
        return false;
    }
}

} // namespace warren::locality
