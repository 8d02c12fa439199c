// What is inserted into a block, encoded once: DynamoRIO, which keeps only what it has encoded of
// the program's own instructions, would do it three times for each, and that is a good part of the
// time that a block takes.
//
// Thread rule: called by DynamoRIO, for a block of its own each time.
#pragma once

#include "dr_api.h"

namespace warren::locality::counts {

// When nothing more is inserted but by DynamoRIO itself.
void encode_once(void* context, instrlist_t* block);

} // namespace warren::locality::counts
