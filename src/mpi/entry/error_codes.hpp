// Error codes: the integers that calls return, and the sentences behind them (MPI chapter 9).
//
//     0 … MPI_ERR_LASTCODE     the standard's classes
//     above, bit 30 clear      classes and codes that the program added
//     bit 30 set               one failure: bits 29…14 a serial number, 13…0 its class
// The sentences of the last failures are kept, so that MPI_Error_string can tell call, argument and
// value; of older ones only the class is left.
// Thread rule: under the rank's lock, but the plain functions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "mpi.h"

namespace warren::mpi {

// "MPI_ERR_RANK", or null for what is no class of the standard.
const char* error_class_name(int error_class);
// A sentence for a class of the standard.
const char* error_class_text(int error_class);

class ErrorCodes {
  public:
    // The code of a failure, which keeps its sentence.
    int instance(int error_class, std::string&& text);

    // The class of a code; MPI_ERR_UNKNOWN for what is no code.
    int class_of(int code) const;
    bool known(int code) const;
    // The text of MPI_Error_string for a known code.
    std::string text_of(int code) const;

    // Classes, codes and strings of the program.
    int add_class();
    int add_code(int error_class);
    Error remove_class(int error_class);
    Error remove_code(int code);
    Error set_text(int code, const char* text);
    Error remove_text(int code);

    bool any_added() const { return !added_.empty(); }

    // The value of the attribute MPI_LASTUSEDCODE.
    int* last_used() { return &last_used_; }

  private:
    static constexpr int instance_bit = 1 << 30;
    static constexpr int class_bits = 14;
    static constexpr std::uint32_t serial_mask = 0xffff;
    // Failures of which the sentences are kept: a program asks soon, if at all.
    static constexpr std::uint32_t kept = 16;

    struct Failure {
        int code = 0;
        std::string text;
    };

    struct Added {
        int error_class;         // itself, of a class
        std::uint32_t codes = 0; // of a class: codes that it has
        std::string text;
    };

    std::uint32_t serial_ = 0;
    std::unique_ptr<std::array<Failure, kept>> failures_; // null until the first
    std::map<int, Added> added_;
    int last_used_ = MPI_ERR_LASTCODE;
};

} // namespace warren::mpi
