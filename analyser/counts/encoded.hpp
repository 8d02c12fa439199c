// Encodes inserted instructions once. DynamoRIO keeps only encodings of the program's own
// instructions, and would encode each inserted one three times, which is a good part of a block's
// building time.
//
// Thread rule: called by DynamoRIO, each time for a block of the caller's own.
#pragma once

#include "dr_api.h"

namespace warren::locality::counts {

// Call when only DynamoRIO itself still inserts instructions.
void encode_once(void* context, instrlist_t* block);

} // namespace warren::locality::counts
