// The qualified name in a C++ symbol: "grid::Level::resize" of "_ZN4grid5Level6resizeEm".
// Parameters are left out. Symbols with templates, operators and the like have no such name here,
// and are known by the symbol. Thread rule: any.
#pragma once

#include <cstddef>

namespace warren::memory {

// False: it has none, or it doesn't fit.
bool qualified_name(const char* symbol, char* name, std::size_t bytes);

} // namespace warren::memory
