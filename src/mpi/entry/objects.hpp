// The kinds of object that entry points hand to the functions of this room, declared only.
#pragma once

namespace warren::comm {
class Attributes;
class Communicator;
class ErrorHandler;
class Info;
struct Group;
struct Session;
} // namespace warren::comm

namespace warren::coll {
class Op;
}

namespace warren::datatype {
struct Datatype;
}

namespace warren::message {
struct Request;
}

namespace warren::rma {
class Window;
}

namespace warren::io {
class File;
}

namespace warren::mpi {
struct Context;
}
