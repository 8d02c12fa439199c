// Relocation of one module.
#include <algorithm>
#include <cstring>
#include <dlfcn.h>

#include "image/architecture.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/relocation.hpp"
#include "warren/image.h"

namespace warren::image {

using architecture::RelocationKind;

namespace {

class Relocator {
  public:
    Relocator(Image& image, Module& module, const std::vector<BoundSymbol>* known,
              std::vector<BoundSymbol>* found, bool lazy)
        : image_(image),
          module_(module),
          symbols_(module.file->symbols()),
          known_(known),
          found_(found),
          lazy_(lazy && !module.file->dynamic().bind_now) {
        if (found_ != nullptr && known_ == nullptr) {
            found_->resize(std::size_t{2} * symbols_.count());
        }
    }

    Error run() {
        for_each_relative_word(*module_.file, [&](std::uint64_t address) { add(address, base()); });
        // Resolvers of functions may call others and read data: they run when all else is in place.
        for (const bool choosing : {false, true}) {
            for (const auto& relocations :
                 {module_.file->dynamic().relocations, module_.file->dynamic().plt_relocations}) {
                for (const Elf64_Rela& relocation : relocations) {
                    if (Error error = apply(relocation, choosing)) {
                        return error;
                    }
                }
            }
        }
        return {};
    }

  private:
    std::uint64_t base() const { return reinterpret_cast<std::uint64_t>(module_.base); }

    void put(std::uint64_t address, std::uint64_t value) {
        std::memcpy(module_.at(address), &value, sizeof value);
    }
    void add(std::uint64_t address, std::uint64_t value) {
        std::uint64_t old = 0;
        std::memcpy(&old, module_.at(address), sizeof old);
        put(address, old + value);
    }

    Error apply(const Elf64_Rela& relocation, bool choosing) {
        const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info));
        const auto index = static_cast<std::uint32_t>(ELF64_R_SYM(relocation.r_info));
        const auto addend = static_cast<std::uint64_t>(relocation.r_addend);
        const std::uint64_t place = relocation.r_offset;
        const RelocationKind kind = architecture::relocation_kind(type);
        if (choosing != (kind == RelocationKind::function)) {
            return {};
        }
        switch (kind) {
        case RelocationKind::nothing:
        case RelocationKind::unsupported: // refused before
            return {};
        case RelocationKind::relative:
            put(place, base() + addend);
            return {};
        case RelocationKind::function:
            put(place, reinterpret_cast<std::uint64_t>(
                           reinterpret_cast<void* (*)()>(module_.at(addend))()));
            return {};
        case RelocationKind::copy:
            return copy(place, index);
        default:
            break;
        }
        Definition definition;
        if (kind == RelocationKind::slot && lazy_ && is_undefined(index)) {
            module_.undefined.emplace_back(place, index);
            put(place, reinterpret_cast<std::uint64_t>(&libc::undefined_function));
            return {};
        }
        const SymbolUse use = kind == RelocationKind::word ? SymbolUse::address : SymbolUse::call;
        if (Error error = resolve(index, use, definition)) {
            return error;
        }
        switch (kind) {
        case RelocationKind::word:
        case RelocationKind::slot: {
            const auto value = reinterpret_cast<std::uint64_t>(
                index == 0 ? module_.base : (definition ? Image::address_of(definition) : nullptr));
            put(place, kind == RelocationKind::slot ? value : value + addend);
            return {};
        }
        case RelocationKind::tls_module:
            return put_tls_module(place, definition);
        case RelocationKind::tls_offset:
            put(place, value_of(definition) + addend);
            return {};
        default: {
            std::uint64_t offset = 0;
            if (Error error = thread_offset(index, definition, offset)) {
                return error;
            }
            if (kind == RelocationKind::tls_descriptor) {
                put(place,
                    reinterpret_cast<std::uint64_t>(architecture::tls_descriptor_function()));
                put(place + sizeof(std::uint64_t), offset + addend);
            } else {
                put(place, offset + addend);
            }
            return {};
        }
        }
    }

    // Symbol 0 is the module itself: a definition without a symbol.
    Error resolve(std::uint32_t index, SymbolUse use, Definition& definition) {
        const Elf64_Sym& symbol = symbols_.symbol(index);
        if (index == 0) {
            definition = {&module_, nullptr, nullptr, nullptr, nullptr};
            return {};
        }
        if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) {
            definition = {&module_, nullptr, &symbol, nullptr, nullptr};
            return {};
        }
        const std::size_t bound = 2 * std::size_t{index} + (use == SymbolUse::call ? 1 : 0);
        if (known_ != nullptr && (*known_)[bound].known) {
            definition = from_bound((*known_)[bound]);
            return {};
        }
        if (Error error = look_up(index, use, definition)) {
            return error;
        }
        if (found_ != nullptr && known_ == nullptr) {
            (*found_)[bound] = to_bound(definition);
        }
        return {};
    }

    bool is_undefined(std::uint32_t index) {
        const Elf64_Sym& symbol = symbols_.symbol(index);
        return symbol.st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL &&
               !image_.find({symbols_.name(index), symbols_.version(index)}, SymbolUse::call,
                            &module_);
    }

    Error look_up(std::uint32_t index, SymbolUse use, Definition& definition) {
        const Elf64_Sym& symbol = symbols_.symbol(index);
        const SymbolName name(symbols_.name(index), symbols_.version(index));
        if (module_.file->dynamic().symbolic) {
            if (const Elf64_Sym* own = symbols_.find(name, use)) {
                definition = {&module_, nullptr, own, nullptr, nullptr};
                return {};
            }
        }
        definition = image_.find(name, use, &module_);
        note_use(module_, definition.module);
        if (!definition && ELF64_ST_BIND(symbol.st_info) != STB_WEAK) {
            return fail(WARREN_IMAGE_ERR_SYMBOL,
                        "%s: undefined symbol: %s (none of its libraries defines it)",
                        module_.file->path().c_str(), symbols_.text(index).c_str());
        }
        return {};
    }

    Definition from_bound(const BoundSymbol& bound) {
        Definition definition{nullptr, bound.library, bound.symbol, bound.address, nullptr};
        if (bound.module >= 0) {
            definition.module = image_.modules()[static_cast<std::size_t>(bound.module)].get();
        }
        if (bound.variable >= 0) {
            definition.variable = &image_.libc_state().place(static_cast<Variable>(bound.variable));
            definition.address = *definition.variable;
        }
        return definition;
    }

    BoundSymbol to_bound(const Definition& definition) {
        BoundSymbol bound{true, -1, -1, definition.library, definition.symbol, definition.address};
        for (std::size_t i = 0; i < image_.modules().size(); ++i) {
            if (image_.modules()[i].get() == definition.module) {
                bound.module = static_cast<std::int32_t>(i);
            }
        }
        for (std::size_t i = 0; i < variable_count; ++i) {
            if (definition.variable == &image_.libc_state().place(static_cast<Variable>(i))) {
                bound.variable = static_cast<std::int16_t>(i);
            }
        }
        return bound;
    }

    // The program has a library's variable in its own memory, with the library's initial contents.
    Error copy(std::uint64_t place, std::uint32_t index) {
        const Elf64_Sym& symbol = symbols_.symbol(index);
        const SymbolName name(symbols_.name(index), symbols_.version(index));
        const Definition source = image_.find(name, SymbolUse::address, &module_, &module_);
        const void* from = source ? Image::address_of(source) : nullptr;
        if (from == nullptr) {
            return fail(WARREN_IMAGE_ERR_SYMBOL,
                        "%s copies the variable %s, which none of its libraries defines",
                        module_.file->path().c_str(), symbols_.text(index).c_str());
        }
        const std::uint64_t bytes = source.symbol != nullptr
                                        ? std::min(symbol.st_size, source.symbol->st_size)
                                        : symbol.st_size;
        std::memcpy(module_.at(place), from, bytes);
        if (source.variable != nullptr) {
            *source.variable = module_.at(place);
        }
        return {};
    }

    static std::uint64_t value_of(const Definition& definition) {
        return definition.symbol == nullptr ? 0 : definition.symbol->st_value;
    }

    Error put_tls_module(std::uint64_t place, const Definition& definition) {
        if (definition.library != nullptr) {
            std::size_t number = 0;
            dlinfo(definition.library->link, RTLD_DI_TLS_MODID, &number);
            put(place, number);
        } else if (definition.module != nullptr) {
            put(place, architecture::tls_module_word(definition.module->tls_offset));
        }
        return {};
    }

    Error thread_offset(std::uint32_t index, const Definition& definition, std::uint64_t& offset) {
        if (definition.module != nullptr) {
            offset =
                static_cast<std::uint64_t>(definition.module->tls_offset) + value_of(definition);
            return {};
        }
        if (definition.library == nullptr) {
            offset = 0; // weak and nowhere: the program asks first whether it is there
            return {};
        }
        if (!definition.library->from_start) {
            return fail(WARREN_IMAGE_ERR_UNSUITABLE,
                        "%s needs the thread-local variable %s at a fixed place, but %s, which "
                        "images share, was loaded after the host program's start: link the host "
                        "program to it",
                        module_.file->path().c_str(), symbols_.text(index).c_str(),
                        definition.library->file->path().c_str());
        }
        const auto* address = static_cast<std::byte*>(Image::address_of(definition));
        offset = static_cast<std::uint64_t>(address - architecture::thread_pointer());
        return {};
    }

    Image& image_;
    Module& module_;
    const SymbolTable& symbols_;
    const std::vector<BoundSymbol>* known_;
    std::vector<BoundSymbol>* found_;
    bool lazy_;
};

} // namespace

void note_use(Module& user, Module* used) {
    if (used != nullptr && used->root != nullptr && used->root != user.root &&
        std::find(user.needs.begin(), user.needs.end(), used) == user.needs.end()) {
        user.needs.push_back(used);
    }
}

Error relocate(Image& image, Module& module, const std::vector<BoundSymbol>* known,
               std::vector<BoundSymbol>* found, bool lazy) {
    if (Error error = Relocator(image, module, known, found, lazy).run()) {
        return error;
    }
    if (Error error = module.protect()) {
        return error;
    }
    module.state = Module::State::relocated;
    return {};
}

} // namespace warren::image
