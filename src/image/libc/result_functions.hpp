// Functions that return pointers to memory of the C library's, or remember something there
// (results.cpp), for the image of the calling thread.
//
// Thread rule: called by images, in their threads, as the C library's.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cuchar>
#include <tuple>

#include "image/libc/results.hpp"

namespace warren::image::libc {

char* ecvt(double value, int digits, int* point, int* sign);
char* fcvt(double value, int digits, int* point, int* sign);
char* qecvt(long double value, int digits, int* point, int* sign);
char* qfcvt(long double value, int digits, int* point, int* sign);
char* l64a(long value);
int hcreate(std::size_t entries);
ENTRY* hsearch(ENTRY entry, ACTION action);
void hdestroy();
passwd* getpwuid(uid_t user);
passwd* getpwnam(const char* name);
passwd* fgetpwent(std::FILE* stream);
group* getgrgid(gid_t group);
group* getgrnam(const char* name);
group* fgetgrent(std::FILE* stream);
spwd* getspnam(const char* name);
servent* getservbyname(const char* name, const char* protocol);
servent* getservbyport(int port, const char* protocol);
protoent* getprotobyname(const char* name);
protoent* getprotobynumber(int number);
netent* getnetbyname(const char* name);
netent* getnetbyaddr(std::uint32_t network, int type);
hostent* gethostbyname(const char* name);
hostent* gethostbyname2(const char* name, int family);
hostent* gethostbyaddr(const void* address, socklen_t bytes, int type);
void setpwent();
passwd* getpwent();
void endpwent();
void setgrent();
group* getgrent();
void endgrent();
void setspent();
spwd* getspent();
void endspent();
void setservent(int stays);
servent* getservent();
void endservent();
void setprotoent(int stays);
protoent* getprotoent();
void endprotoent();
void setnetent(int stays);
netent* getnetent();
void endnetent();
void sethostent(int stays);
hostent* gethostent();
void endhostent();
void setrpcent(int stays);
rpcent* getrpcent();
void endrpcent();
mntent* getmntent(std::FILE* stream);
char* ttyname(int descriptor);
char* ptsname(int descriptor);
char* getlogin();
char* tmpnam(char* name);
char* ether_ntoa(const ether_addr* card);
ether_addr* ether_aton(const char* text);
lconv* localeconv();
std::mbstate_t* conversion_state(std::size_t function);
int mbtowc(wchar_t* wide, const char* text, std::size_t bytes);
int mblen(const char* text, std::size_t bytes);
int wctomb(char* text, wchar_t wide);
std::size_t wcrtomb(char* text, wchar_t wide, std::mbstate_t* state);
int wctomb_chk(char* text, wchar_t wide, std::size_t room);

// The C library's function that converts characters by a state, of ours if the program gives none.
template <typename Function, auto function, std::size_t number>
struct ConverterOf;
template <typename Result, typename... Arguments, auto function, std::size_t number>
struct ConverterOf<Result (*)(Arguments...), function, number> {
    static Result call(Arguments... arguments) {
        std::tuple all(arguments...);
        std::mbstate_t*& state = std::get<std::mbstate_t*>(all);
        state = state != nullptr ? state : conversion_state(number);
        return std::apply(function, all);
    }
};
template <typename Result, typename... Arguments, auto function, std::size_t number>
struct ConverterOf<Result (*)(Arguments...) noexcept, function, number>
    : ConverterOf<Result (*)(Arguments...), function, number> {};
template <auto function, std::size_t number>
using Converter = ConverterOf<decltype(function), function, number>;

} // namespace warren::image::libc
