// Functions that return pointers to memory of the C library's, or remember something there between
// calls: ecvt, l64a, hcreate, getpwuid, localeconv, mbtowc and their kin.
#include "image/libc/results.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unistd.h>

#include "image/libc/functions.hpp"
#include "image/libc/result_functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

Results& results() {
    return LibcState::current().results();
}

// Asks a function that takes memory for strings, with ever more of it. Null, and errno when it has
// failed: nothing is found.
template <typename Entry, typename Ask>
Entry* ask(DatabaseEntry<Entry>& own, Ask ask_with) {
    constexpr std::size_t first_bytes = 1024;
    own.strings.resize(std::max(own.strings.size(), first_bytes));
    while (true) {
        Entry* found = nullptr;
        const int error = ask_with(&own.entry, own.strings.data(), own.strings.size(), &found);
        if (error != ERANGE) {
            if (error != 0) {
                errno = error;
            }
            return found;
        }
        own.strings.resize(2 * own.strings.size());
    }
}

} // namespace

// ---- Numbers as text

char* ecvt(double value, int digits, int* point, int* sign) {
    char* text = results().digits.data();
    ::ecvt_r(value, digits, point, sign, text, results().digits.size());
    return text;
}

char* fcvt(double value, int digits, int* point, int* sign) {
    char* text = results().digits.data();
    ::fcvt_r(value, digits, point, sign, text, results().digits.size());
    return text;
}

char* qecvt(long double value, int digits, int* point, int* sign) {
    char* text = results().long_digits.data();
    ::qecvt_r(value, digits, point, sign, text, results().long_digits.size());
    return text;
}

char* qfcvt(long double value, int digits, int* point, int* sign) {
    char* text = results().long_digits.data();
    ::qfcvt_r(value, digits, point, sign, text, results().long_digits.size());
    return text;
}

char* l64a(long value) {
    static constexpr char digits[] =
        "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    char* text = results().base64.data();
    std::size_t count = 0;
    for (auto rest = static_cast<std::uint32_t>(value); rest != 0; rest >>= 6) {
        text[count++] = digits[rest & 63];
    }
    text[count] = 0;
    return text;
}

// ---- The hash table

int hcreate(std::size_t entries) {
    return ::hcreate_r(entries, &results().table);
}

ENTRY* hsearch(ENTRY entry, ACTION action) {
    ENTRY* found = nullptr;
    ::hsearch_r(entry, action, &found, &results().table);
    return found;
}

void hdestroy() {
    ::hdestroy_r(&results().table);
}

// ---- Databases of the system

passwd* getpwuid(uid_t user) {
    return ask(results().user_by_number,
               [&](auto... place) { return ::getpwuid_r(user, place...); });
}

passwd* getpwnam(const char* name) {
    return ask(results().user_by_name, [&](auto... place) { return ::getpwnam_r(name, place...); });
}

passwd* fgetpwent(std::FILE* stream) {
    return ask(results().user_in_file,
               [&](auto... place) { return ::fgetpwent_r(stream, place...); });
}

group* getgrgid(gid_t group) {
    return ask(results().group_by_number,
               [&](auto... place) { return ::getgrgid_r(group, place...); });
}

group* getgrnam(const char* name) {
    return ask(results().group_by_name,
               [&](auto... place) { return ::getgrnam_r(name, place...); });
}

group* fgetgrent(std::FILE* stream) {
    return ask(results().group_in_file,
               [&](auto... place) { return ::fgetgrent_r(stream, place...); });
}

spwd* getspnam(const char* name) {
    return ask(results().shadow, [&](auto... place) { return ::getspnam_r(name, place...); });
}

servent* getservbyname(const char* name, const char* protocol) {
    return ask(results().service_by_name,
               [&](auto... place) { return ::getservbyname_r(name, protocol, place...); });
}

servent* getservbyport(int port, const char* protocol) {
    return ask(results().service_by_port,
               [&](auto... place) { return ::getservbyport_r(port, protocol, place...); });
}

protoent* getprotobyname(const char* name) {
    return ask(results().protocol_by_name,
               [&](auto... place) { return ::getprotobyname_r(name, place...); });
}

protoent* getprotobynumber(int number) {
    return ask(results().protocol_by_number,
               [&](auto... place) { return ::getprotobynumber_r(number, place...); });
}

netent* getnetbyname(const char* name) {
    return ask(results().network_by_name,
               [&](auto... place) { return ::getnetbyname_r(name, place..., &h_errno); });
}

netent* getnetbyaddr(std::uint32_t network, int type) {
    return ask(results().network_by_address,
               [&](auto... place) { return ::getnetbyaddr_r(network, type, place..., &h_errno); });
}

hostent* gethostbyname(const char* name) {
    return ask(results().host_by_name,
               [&](auto... place) { return ::gethostbyname_r(name, place..., &h_errno); });
}

hostent* gethostbyname2(const char* name, int family) {
    return ask(results().host_by_family,
               [&](auto... place) { return ::gethostbyname2_r(name, family, place..., &h_errno); });
}

hostent* gethostbyaddr(const void* address, socklen_t bytes, int type) {
    return ask(results().host_by_address, [&](auto... place) {
        return ::gethostbyaddr_r(address, bytes, type, place..., &h_errno);
    });
}

namespace {

std::mutex& databases_lock() {
    static std::mutex& only = *new std::mutex;
    return only;
}

// Reads on to the end. `ask_next` is the C library's function that takes memory for strings.
template <typename Entry, typename Ask>
void read_all(DatabaseList<Entry>& list, Ask ask_next) {
    while (true) {
        DatabaseEntry<Entry>& one = list.entries.emplace_back();
        if (ask(one, ask_next) == nullptr) {
            list.entries.pop_back();
            return;
        }
    }
}

template <typename Entry>
DatabaseList<Entry>& list_of() {
    return std::get<DatabaseList<Entry>>(results().lists);
}

template <typename Entry, typename Begin, typename Ask, typename End>
Entry* next_entry(Begin begin, Ask ask_next, End end) {
    DatabaseList<Entry>& list = list_of<Entry>();
    if (!list.is_read) {
        const std::lock_guard guard(databases_lock());
        end();
        begin();
        read_all(list, ask_next);
        end();
        list.is_read = true;
    }
    return list.next < list.entries.size() ? &list.entries[list.next++].entry : nullptr;
}

// The C library begins anew, too: a program may go on with a function that takes memory
// (getpwent_r). Nothing stays open: a descriptor would be this image's, and not the next one's.
template <typename Entry, typename Change>
void leave_list(Change change) {
    list_of<Entry>() = {};
    const std::lock_guard guard(databases_lock());
    change();
}

} // namespace

void setpwent() {
    leave_list<passwd>(::endpwent);
}
passwd* getpwent() {
    return next_entry<passwd>(::setpwent, ::getpwent_r, ::endpwent);
}
void endpwent() {
    leave_list<passwd>(::endpwent);
}

void setgrent() {
    leave_list<group>(::endgrent);
}
group* getgrent() {
    return next_entry<group>(::setgrent, ::getgrent_r, ::endgrent);
}
void endgrent() {
    leave_list<group>(::endgrent);
}

void setspent() {
    leave_list<spwd>(::endspent);
}
spwd* getspent() {
    return next_entry<spwd>(::setspent, ::getspent_r, ::endspent);
}
void endspent() {
    leave_list<spwd>(::endspent);
}

void setservent(int) {
    leave_list<servent>(::endservent);
}
servent* getservent() {
    return next_entry<servent>([] { ::setservent(1); }, ::getservent_r, ::endservent);
}
void endservent() {
    leave_list<servent>(::endservent);
}

void setprotoent(int) {
    leave_list<protoent>(::endprotoent);
}
protoent* getprotoent() {
    return next_entry<protoent>([] { ::setprotoent(1); }, ::getprotoent_r, ::endprotoent);
}
void endprotoent() {
    leave_list<protoent>(::endprotoent);
}

void setnetent(int) {
    leave_list<netent>(::endnetent);
}
netent* getnetent() {
    return next_entry<netent>([] { ::setnetent(1); },
                              [](auto... place) { return ::getnetent_r(place..., &h_errno); },
                              ::endnetent);
}
void endnetent() {
    leave_list<netent>(::endnetent);
}

void sethostent(int) {
    leave_list<hostent>(::endhostent);
}
hostent* gethostent() {
    return next_entry<hostent>([] { ::sethostent(1); },
                               [](auto... place) { return ::gethostent_r(place..., &h_errno); },
                               ::endhostent);
}
void endhostent() {
    leave_list<hostent>(::endhostent);
}

void setrpcent(int) {
    leave_list<rpcent>(::endrpcent);
}
rpcent* getrpcent() {
    return next_entry<rpcent>([] { ::setrpcent(1); }, ::getrpcent_r, ::endrpcent);
}
void endrpcent() {
    leave_list<rpcent>(::endrpcent);
}

mntent* getmntent(std::FILE* stream) {
    constexpr std::size_t bytes = 4096; // as the C library
    DatabaseEntry<mntent>& own = results().mount;
    own.strings.resize(bytes);
    return ::getmntent_r(stream, &own.entry, own.strings.data(), bytes);
}

// ---- Names

char* ttyname(int descriptor) {
    auto& text = results().terminal;
    const int error = ::ttyname_r(descriptor, text.data(), text.size());
    errno = error != 0 ? error : errno;
    return error == 0 ? text.data() : nullptr;
}

char* ptsname(int descriptor) {
    auto& text = results().other_end;
    return ::ptsname_r(descriptor, text.data(), text.size()) == 0 ? text.data() : nullptr;
}

char* getlogin() {
    auto& text = results().login;
    const int error = ::getlogin_r(text.data(), text.size());
    errno = error != 0 ? error : errno;
    return error == 0 ? text.data() : nullptr;
}

char* tmpnam(char* name) {
    return ::tmpnam_r(name != nullptr ? name : results().file_name.data());
}

char* ether_ntoa(const ether_addr* card) {
    return ::ether_ntoa_r(card, results().card_text.data());
}

ether_addr* ether_aton(const char* text) {
    return ::ether_aton_r(text, &results().card);
}

// The C library fills one that is the process's.
lconv* localeconv() {
    static std::mutex& lock = *new std::mutex;
    const std::lock_guard guard(lock);
    results().conventions = *std::localeconv();
    return &results().conventions;
}

// ---- Characters

std::mbstate_t* conversion_state(std::size_t function) {
    return &results().conversions[function];
}

int mbtowc(wchar_t* wide, const char* text, std::size_t bytes) {
    std::mbstate_t* state = conversion_state(0);
    if (text == nullptr) {
        *state = {};
        return 0; // no encoding of a locale has states
    }
    const std::size_t taken = std::mbrtowc(wide, text, bytes, state);
    if (taken < static_cast<std::size_t>(-2)) {
        return static_cast<int>(taken);
    }
    *state = {};
    return -1;
}

int mblen(const char* text, std::size_t bytes) {
    return libc::mbtowc(nullptr, text, bytes);
}

int wctomb(char* text, wchar_t wide) {
    std::mbstate_t* state = conversion_state(1);
    if (text == nullptr) {
        *state = {};
        return 0;
    }
    return static_cast<int>(std::wcrtomb(text, wide, state));
}

std::size_t wcrtomb(char* text, wchar_t wide, std::mbstate_t* state) {
    return std::wcrtomb(text, wide, state != nullptr ? state : conversion_state(4));
}

int wctomb_chk(char* text, wchar_t wide, std::size_t room) {
    if (room < MB_CUR_MAX) {
        libc::chk_fail();
    }
    return libc::wctomb(text, wide);
}

} // namespace warren::image::libc
