// Results: what functions of the C library return pointers to, or remember between calls, and has
// no other place in LibcState.
//
// Thread rule: as in the C library: a call may change what another thread's has returned.
#pragma once

#include <array>
#include <clocale>
#include <cwchar>
#include <deque>
#include <grp.h>
#include <mntent.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <pwd.h>
#include <search.h>
#include <shadow.h>
#include <string>
#include <tuple>
#include <vector>

namespace warren::image {

// An entry of a database of the system, and the strings that it points to.
template <typename Entry>
struct DatabaseEntry {
    Entry entry{};
    std::vector<char> strings;
};

// The unread entries of a database that a program reads one by one. The first call reads all
// entries, because the C library keeps one position for all images.
template <typename Entry>
struct DatabaseList {
    std::deque<DatabaseEntry<Entry>> entries;
    std::size_t next = 0;
    bool is_read = false;
};

struct Results {
    std::array<char, 512> digits{};       // ecvt, fcvt
    std::array<char, 8192> long_digits{}; // qecvt, qfcvt
    std::array<char, 8> base64{};         // l64a
    hsearch_data table{};                 // hcreate
    // Each function has a result of its own: a program may use those of several at once.
    DatabaseEntry<passwd> user_by_number, user_by_name, user_in_file;
    DatabaseEntry<group> group_by_number, group_by_name, group_in_file;
    DatabaseEntry<spwd> shadow;
    DatabaseEntry<servent> service_by_name, service_by_port;
    DatabaseEntry<protoent> protocol_by_name, protocol_by_number;
    DatabaseEntry<netent> network_by_name, network_by_address;
    DatabaseEntry<hostent> host_by_name, host_by_family, host_by_address;
    DatabaseEntry<mntent> mount;
    std::tuple<DatabaseList<passwd>, DatabaseList<group>, DatabaseList<spwd>, DatabaseList<servent>,
               DatabaseList<protoent>, DatabaseList<netent>, DatabaseList<hostent>,
               DatabaseList<rpcent>>
        lists;
    std::array<char, 4096> terminal{}; // ttyname
    std::array<char, 64> other_end{};  // ptsname
    std::array<char, 256> login{};
    std::array<char, L_tmpnam> file_name{};
    std::array<char, 32> card_text{}; // ether_ntoa
    ether_addr card{};
    lconv conventions{};
    // States of functions that convert characters, for programs that pass none.
    std::array<std::mbstate_t, 16> conversions{};
};

} // namespace warren::image
