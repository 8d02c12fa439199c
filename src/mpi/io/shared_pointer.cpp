#include "mpi/io/shared_pointer.hpp"

#include <utility>

#include "mpi/op/op.hpp"

namespace warren::io {

Error SharedPointer::make(rma::WindowServer& server, message::Engine& engine,
                          comm::Communicator& communicator) {
    auto window = std::make_unique<rma::Window>(server, engine, communicator);
    const bool has_it = communicator.rank() == 0;
    rma::WindowPlan plan;
    plan.flavour = rma::Flavour::allocate;
    plan.size = has_it ? static_cast<MPI_Aint>(sizeof *word_) : 0;
    if (Error error = window->create(plan)) {
        return error;
    }
    // (The window's memory is new, so the word is 0.)
    word_ = has_it ? static_cast<std::atomic<std::int64_t>*>(window->values.base) : nullptr;
    window_ = std::move(window);
    return window_->lock_all(MPI_MODE_NOCHECK); // one epoch, as long as the file is open
}

Error SharedPointer::end() {
    if (window_ == nullptr) {
        return {};
    }
    Error error = window_->unlock_all();
    error = error ? error : window_->end();
    if (!error) {
        window_.reset();
    }
    return error;
}

Error SharedPointer::add(std::int64_t addend, std::int64_t& before) {
    if (window_ != nullptr) {
        return window_->fetch_and_op(&addend, &before, datatype::basic(MPI_INT64_T), 0, 0,
                                     coll::Op(coll::OpKind::sum));
    }
    if (word_ == nullptr) {
        return fail(MPI_ERR_UNSUPPORTED_OPERATION,
                    "the file is open in several worlds: only its first rank has the shared "
                    "pointer in this version of Warren");
    }
    before = word_->fetch_add(addend, std::memory_order_relaxed);
    return {};
}

} // namespace warren::io
