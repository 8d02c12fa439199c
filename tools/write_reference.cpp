// Writes the reference of a command, or checks one that has been written.
//     write_reference mpiexec|warren markdown|roff FILE
//     write_reference mpiexec|warren check FILE      exit code 1 if it is not what `markdown` would
//     write
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "reference.hpp"

using warren::tools::Reference;

int main(int argc, char** argv) {
    const std::string page = argc == 4 ? argv[1] : "";
    const std::string form = argc == 4 ? argv[2] : "";
    if ((page != "mpiexec" && page != "warren") ||
        (form != "markdown" && form != "roff" && form != "check")) {
        std::fputs("usage: write_reference mpiexec|warren markdown|roff|check FILE\n", stderr);
        return 2;
    }
    const Reference reference =
        page == "mpiexec" ? warren::tools::mpiexec_reference() : warren::tools::warren_reference();
    const std::string text =
        form == "roff" ? warren::tools::as_roff(reference) : warren::tools::as_markdown(reference);
    if (form == "check") {
        std::ifstream file(argv[3]);
        if (std::string(std::istreambuf_iterator<char>(file), {}) != text) {
            std::fprintf(stderr,
                         "%s is not what the tables of %s say: cmake --build --preset release "
                         "--target reference writes it again\n",
                         argv[3], page.c_str());
            return 1;
        }
        return 0;
    }
    std::ofstream file(argv[3]);
    file << text;
    file.close();
    if (!file) {
        std::fprintf(stderr, "write_reference: can't write %s\n", argv[3]);
        return 1;
    }
    return 0;
}
