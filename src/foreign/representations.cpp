// Data representations of files: the program's functions get the foreign ABI's datatypes, through a
// record that lives as long as the process, as the representation does.

#include <atomic>
#include <memory>
#include <new>

#include "foreign/arguments.hpp"
#include "foreign/export.hpp"

namespace warren::foreign {

namespace {

template <typename Elements>
using Conversion = int(void* userbuf, Datatype datatype, Elements count, void* filebuf,
                       MPI_Offset position, void* extra_state);
using Extent = int(Datatype datatype, MPI_Aint* extent, void* extra_state);

template <typename Elements>
struct RegisteredRepresentation {
    Conversion<Elements>* read;
    Conversion<Elements>* write;
    Extent* extent;
    void* extra_state;
    RegisteredRepresentation* before = nullptr; // the one that was registered before

    // The one that was registered last.
    static inline std::atomic<RegisteredRepresentation*> last{nullptr};

    static int call_read(void* userbuf, MPI_Datatype datatype, Elements count, void* filebuf,
                         MPI_Offset position, void* extra_state) {
        const auto& its = *static_cast<RegisteredRepresentation*>(extra_state);
        return core_error(its.read(userbuf, handle::Datatype::foreign(datatype), count, filebuf,
                                   position, its.extra_state));
    }
    static int call_write(void* userbuf, MPI_Datatype datatype, Elements count, void* filebuf,
                          MPI_Offset position, void* extra_state) {
        const auto& its = *static_cast<RegisteredRepresentation*>(extra_state);
        return core_error(its.write(userbuf, handle::Datatype::foreign(datatype), count, filebuf,
                                    position, its.extra_state));
    }
    static int call_extent(MPI_Datatype datatype, MPI_Aint* extent, void* extra_state) {
        const auto& its = *static_cast<RegisteredRepresentation*>(extra_state);
        return core_error(its.extent(handle::Datatype::foreign(datatype), extent, its.extra_state));
    }
};

// MPI_CONVERSION_FN_NULL is a null pointer in all ABIs.
template <typename Elements, typename Register>
int register_representation(Register register_core, const char* datarep,
                            const RegisteredRepresentation<Elements>& functions) {
    using Registered = RegisteredRepresentation<Elements>;
    std::unique_ptr<Registered> made(new (std::nothrow) Registered(functions));
    if (made == nullptr) {
        return no_memory();
    }
    const int code =
        register_core(datarep, functions.read != nullptr ? Registered::call_read : nullptr,
                      functions.write != nullptr ? Registered::call_write : nullptr,
                      functions.extent != nullptr ? Registered::call_extent : nullptr, made.get());
    if (hooks.has_representation(datarep, made.get())) {
        Registered* const kept = made.release(); // the representation's
        kept->before = Registered::last.load(std::memory_order_relaxed);
        while (!Registered::last.compare_exchange_weak(kept->before, kept)) {
        }
    }
    return foreign_error(code);
}

} // namespace

WARREN_FOREIGN(int, Register_datarep,
               (const char* datarep, Conversion<int>* read, Conversion<int>* write, Extent* extent,
                void* extra_state)) {
    return register_representation<int>(core.Register_datarep, datarep,
                                        {read, write, extent, extra_state});
}

WARREN_FOREIGN(int, Register_datarep_c,
               (const char* datarep, Conversion<MPI_Count>* read, Conversion<MPI_Count>* write,
                Extent* extent, void* extra_state)) {
    return register_representation<MPI_Count>(core.Register_datarep_c, datarep,
                                              {read, write, extent, extra_state});
}

} // namespace warren::foreign
