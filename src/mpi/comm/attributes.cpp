#include "mpi/comm/attributes.hpp"

#include <algorithm>
#include <utility>

namespace warren::comm {

Keyval* Keyvals::find(int value, AttributeOwner owner) {
    const auto at = std::lower_bound(made_.begin(), made_.end(), value,
                                     [](const auto& keyval, int v) { return keyval->value < v; });
    if (at == made_.end() || (*at)->value != value || (*at)->owner != owner) {
        return nullptr;
    }
    return at->get();
}

int Keyvals::insert(AttributeOwner owner, Keyval::Copy copy, Keyval::Delete remove,
                    void* extra_state) {
    auto keyval = std::make_unique<Keyval>();
    keyval->value = next_++;
    keyval->owner = owner;
    keyval->copy = copy;
    keyval->remove = remove;
    keyval->extra_state = extra_state;
    made_.push_back(std::move(keyval));
    return next_ - 1;
}

void Keyvals::free(Keyval& keyval) {
    if (!keyval.freed) {
        keyval.freed = true;
        release(keyval);
    }
}

void Keyvals::release(Keyval& keyval) {
    if (--keyval.references == 0) {
        std::erase_if(made_, [&](const auto& made) { return made.get() == &keyval; });
    }
}

Attributes::~Attributes() {
    for (const Entry& entry : entries_) {
        keyvals_->numbers().release(entry.value);
        keyvals_->release(*entry.keyval);
    }
}

bool Attributes::get(const Keyval& keyval, void*& value) const {
    for (const Entry& entry : entries_) {
        if (entry.keyval == &keyval) {
            value = entry.value;
            return true;
        }
    }
    return false;
}

Attributes::Entry* Attributes::entry_of(const Keyval& keyval) {
    for (Entry& entry : entries_) {
        if (entry.keyval == &keyval) {
            return &entry;
        }
    }
    return nullptr;
}

void Attributes::put(Keyval& keyval, void* value) {
    keyvals_->numbers().retain(value);
    if (Entry* entry = entry_of(keyval)) {
        keyvals_->numbers().release(std::exchange(entry->value, value));
        return;
    }
    keyvals_->retain(keyval);
    entries_.push_back({&keyval, value});
}

void Attributes::forget(Keyval& keyval) {
    if (const Entry* entry = entry_of(keyval)) {
        keyvals_->numbers().release(entry->value);
        entries_.erase(entries_.begin() + (entry - entries_.data()));
        keyvals_->release(keyval);
    }
}

Error Attributes::refused(const Keyval& keyval, const char* function, int code) {
    return fail(code, "the %s function of keyval %d returned %d", function, keyval.value, code);
}

} // namespace warren::comm
