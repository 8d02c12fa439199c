// The C API of criteria and of predefined attributes (warren/memory.h).
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "memory/attributes/attribute.hpp"
#include "memory/attributes/criteria.hpp"
#include "memory/attributes/report.hpp"

#define WARREN_API extern "C" [[gnu::visibility("default")]]

using warren::Error;
using warren::fail;
using warren::memory::Criteria;
using warren::memory::no_object;
using warren::memory::of;
using warren::memory::report;

namespace {

int hand_over(Criteria made, warren_mem_criteria** criteria) {
    auto* object = new (std::nothrow) Criteria(std::move(made));
    if (object == nullptr) {
        return report(fail(WARREN_MEM_ERR_SYSTEM, "no memory for criteria"));
    }
    *criteria = reinterpret_cast<warren_mem_criteria*>(object);
    return WARREN_MEM_SUCCESS;
}

} // namespace

WARREN_API const char* warren_mem_attribute_name(int attribute) {
    const warren::memory::Attribute* found = warren::memory::predefined_attribute(attribute);
    return found != nullptr ? found->name.data() : nullptr; // literals: a null is behind each
}

WARREN_API int warren_mem_attribute_by_name(const char* name) {
    return name != nullptr ? warren::memory::predefined_attribute_by_name(name) : -1;
}

WARREN_API int warren_mem_criteria_create(warren_mem_criteria** criteria) {
    if (criteria == nullptr) {
        return no_object("warren_mem_criteria_create", "criteria");
    }
    Criteria made;
    made.changed();
    return hand_over(std::move(made), criteria);
}

WARREN_API int warren_mem_criteria_parse(const char* text, warren_mem_criteria** criteria) {
    if (text == nullptr || criteria == nullptr) {
        return no_object("warren_mem_criteria_parse", text == nullptr ? "text" : "criteria");
    }
    Criteria made;
    if (Error error = warren::memory::parse_criteria(text, made)) {
        return report(error);
    }
    return hand_over(std::move(made), criteria);
}

WARREN_API int warren_mem_criteria_copy(const warren_mem_criteria* criteria,
                                        warren_mem_criteria** copy) {
    if (criteria == nullptr || copy == nullptr) {
        return no_object("warren_mem_criteria_copy", criteria == nullptr ? "criteria" : "copy");
    }
    return hand_over(of(criteria), copy);
}

WARREN_API void warren_mem_criteria_free(warren_mem_criteria* criteria) {
    delete reinterpret_cast<Criteria*>(criteria);
}

WARREN_API int warren_mem_criteria_add(warren_mem_criteria* criteria, int attribute,
                                       double tolerance) {
    return criteria == nullptr ? no_object("warren_mem_criteria_add", "criteria")
                               : report(of(criteria).add(attribute, tolerance));
}

WARREN_API int warren_mem_criteria_add_named(warren_mem_criteria* criteria, const char* name,
                                             double tolerance) {
    if (criteria == nullptr || name == nullptr) {
        return no_object("warren_mem_criteria_add_named",
                         criteria == nullptr ? "criteria" : "name");
    }
    return report(of(criteria).add(name, tolerance));
}

WARREN_API int warren_mem_criteria_set_initiator(warren_mem_criteria* criteria,
                                                 const char* initiator) {
    if (criteria == nullptr || initiator == nullptr) {
        return no_object("warren_mem_criteria_set_initiator",
                         criteria == nullptr ? "criteria" : "initiator");
    }
    return report(of(criteria).set_initiator(initiator));
}

WARREN_API int warren_mem_criteria_set_initiator_cpus(warren_mem_criteria* criteria,
                                                      const void* mask, size_t bytes) {
    if (criteria == nullptr || mask == nullptr) {
        return no_object("warren_mem_criteria_set_initiator_cpus",
                         criteria == nullptr ? "criteria" : "mask");
    }
    const auto* first = static_cast<const unsigned char*>(mask);
    while (bytes > 0 && first[bytes - 1] == 0) {
        --bytes;
    }
    if (bytes > warren::memory::max_processors / 8) {
        return report(fail(WARREN_MEM_ERR_ARG, "processor %zu of the mask: there are at most %zu",
                           bytes * 8 - 8,
                           static_cast<std::size_t>(warren::memory::max_processors)));
    }
    std::vector<std::uint64_t> bitmap(bytes / 8 + 1);
    std::memcpy(bitmap.data(), mask, bytes);
    return report(of(criteria).set_processors(std::move(bitmap)));
}

WARREN_API int warren_mem_criteria_set_policy(warren_mem_criteria* criteria, int policy) {
    return criteria == nullptr ? no_object("warren_mem_criteria_set_policy", "criteria")
                               : report(of(criteria).set_policy(policy));
}

WARREN_API int warren_mem_criteria_set_page_size(warren_mem_criteria* criteria, size_t size_bytes) {
    return criteria == nullptr ? no_object("warren_mem_criteria_set_page_size", "criteria")
                               : report(of(criteria).set_page_bytes(size_bytes));
}

WARREN_API int warren_mem_criteria_set_reserved_pages(warren_mem_criteria* criteria,
                                                      size_t size_bytes) {
    return criteria == nullptr ? no_object("warren_mem_criteria_set_reserved_pages", "criteria")
                               : report(of(criteria).set_page_bytes(size_bytes, true));
}

WARREN_API int warren_mem_criteria_set_targets(warren_mem_criteria* criteria, unsigned targets) {
    return criteria == nullptr ? no_object("warren_mem_criteria_set_targets", "criteria")
                               : report(of(criteria).set_targets(targets));
}

WARREN_API int warren_mem_criteria_text(const warren_mem_criteria* criteria, char* text,
                                        size_t bytes, size_t* length) {
    if (criteria == nullptr || (text == nullptr && bytes != 0)) {
        return no_object("warren_mem_criteria_text", criteria == nullptr ? "criteria" : "text");
    }
    const std::string whole = of(criteria).text();
    if (bytes != 0) {
        const std::size_t copied = std::min(whole.size(), bytes - 1);
        std::memcpy(text, whole.data(), copied);
        text[copied] = '\0';
    }
    if (length != nullptr) {
        *length = whole.size();
    }
    return WARREN_MEM_SUCCESS;
}
