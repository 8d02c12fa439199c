"""The ABIs of other MPI libraries as data: foreign_constants.tsv, and which values a kind can have."""

import re
from dataclasses import dataclass, replace

import standard

# Kinds of parameters with a handle -> the name of its kind in src/foreign.
HANDLES = {
    "COMMUNICATOR": "Comm",
    "DATATYPE": "Datatype",
    "GROUP": "Group",
    "INFO": "Info",
    "ERRHANDLER": "Errhandler",
    "OPERATION": "Op",
    "REQUEST": "Request",
    "SESSION": "Session",
    "MESSAGE": "Message",
    "FILE": "File",
    "WINDOW": "Win",
}

# Kinds of parameters whose int is translated -> (function, constants that it can be).
NUMBERS = {
    "RANK": ("rank", "ANY_SOURCE PROC_NULL ROOT UNDEFINED"),
    "TAG": ("tag", "ANY_TAG"),
    "COMBINER": ("combiner", r"COMBINER_\w+"),
    "COMM_COMPARISON": ("comparison", "IDENT CONGRUENT SIMILAR UNEQUAL"),
    "TOPOLOGY_TYPE": ("topology", "CART GRAPH DIST_GRAPH UNDEFINED"),
    "THREAD_LEVEL": ("thread_level", r"THREAD_\w+"),
    "ORDER": ("order", r"ORDER_\w+"),
    "DISTRIB_ENUM": ("distribution", "DISTRIBUTE_NONE DISTRIBUTE_BLOCK DISTRIBUTE_CYCLIC"),
    "DTYPE_DISTRIBUTION": ("distribution_argument", "DISTRIBUTE_DFLT_DARG"),
    "LOCK_TYPE": ("lock_type", r"LOCK_\w+"),
    "SPLIT_TYPE": ("split_type", r"COMM_TYPE_\w+ UNDEFINED"),
    "TYPECLASS": ("type_class", r"TYPECLASS_\w+"),
    "UPDATE_MODE": ("seek_mode", r"SEEK_\w+"),
    "KEYVAL": (
        "keyval",
        "KEYVAL_INVALID TAG_UB IO HOST WTIME_IS_GLOBAL APPNUM LASTUSEDCODE UNIVERSE_SIZE "
        "WIN_BASE WIN_DISP_UNIT WIN_SIZE WIN_CREATE_FLAVOR WIN_MODEL",
    ),
    "WIN_FLAVOR": ("window_flavour", r"WIN_FLAVOR_\w+"),
    "WIN_MODEL": ("window_model", "WIN_UNIFIED WIN_SEPARATE"),
    "ERROR_CLASS": ("error_class", r"(ERR|T_ERR)_\w+"),
    "TOOL_VAR_VERBOSITY": ("verbosity", r"T_VERBOSITY_\w+"),
    "BIND_TYPE": ("binding", r"T_BIND_\w+"),
    "VARIABLE_SCOPE": ("scope", r"T_SCOPE_\w+"),
    "PVAR_CLASS": ("variable_class", r"T_PVAR_CLASS_\w+"),
    "CALLBACK_SAFETY": ("safety", r"T_CB_REQUIRE_\w+"),
    "SOURCE_ORDERING": ("source_order", r"T_SOURCE_\w+"),
}
SAME_NUMBERS = {"RANK_NNI": "RANK", "GROUP_COMPARISON": "COMM_COMPARISON"}

# Kinds of parameters that are sums of constants.
SUMS = {
    "ASSERT": ("assertion", r"MODE_(NOCHECK|NOPRECEDE|NOPUT|NOSTORE|NOSUCCEED)"),
    "ACCESS_MODE": ("access_mode", r"MODE_(?!NO)\w+"),
}

# Parameters whose names differ from the standard's, so that the data lack their kind: indices that come
# back.
INDICES = {("MPI_Waitany", "indx"), ("MPI_Testany", "indx"), ("MPI_Request_get_status_any", "indx")}


def parameters(procedure):
    return [
        replace(parameter, kind="INDEX", direction="out")
        if (procedure.name, parameter.name) in INDICES
        else parameter
        for parameter in procedure.parameters
    ]


# Sizes of Open MPI's exported objects, which executables copy: by the kind of handle.
OBJECT_BYTES = {
    "Comm": 512, "Datatype": 512, "Win": 512, "Session": 512, "Group": 256, "Info": 256,
    "Request": 256, "Message": 256, "Errhandler": 1024, "File": 1536, "Op": 2048,
}

# Objects that no constant of ours names: another name of a type, and objects that the standard lacks.
MORE_OBJECTS = {
    "ompi_mpi_c_complex": "MPI_C_FLOAT_COMPLEX",
    "ompi_mpi_short_float": "MPI_REAL2",
    "ompi_mpi_c_short_float_complex": "MPI_COMPLEX4",
    "ompi_mpi_cxx_sfltcplex": "MPI_COMPLEX4",
}
# Those that a C program gets for the type; Fortran's number is another.
PREFERRED_OBJECTS = ("ompi_mpi_short_float", "ompi_mpi_c_short_float_complex")
OBJECTS_OF_NOTHING = """ompi_mpi_lb ompi_mpi_ub ompi_mpi_2cplex ompi_mpi_2dblcplex ompi_mpi_ldblcplex
ompi_mpi_unavailable""".split()
# Error classes beyond the standard's, which programs may look up though no procedure returns them.
MORE_ERROR_CLASSES = {
    "openmpi": {
        75: "MPI_ERR_PROC_FAILED: a process has failed",
        76: "MPI_ERR_PROC_FAILED_PENDING: a receive from any rank may never end, as a process has failed",
        77: "MPI_ERR_REVOKED: the communicator has been revoked",
    },
    "mpich": {
        101: "MPIX_ERR_PROC_FAILED: a process has failed",
        102: "MPIX_ERR_PROC_FAILED_PENDING: a receive from any rank may never end, as a process has failed",
        103: "MPIX_ERR_REVOKED: the communicator has been revoked",
        104: "MPIX_ERR_EAGAIN: the operation can't be issued now",
        105: "MPIX_ERR_NOREQ: no request can be allocated",
        106: "MPIX_ERR_STREAM: the stream is invalid",
        107: "MPIX_ERR_TIMEOUT: the operation took too long",
    },
}
# An error handler of MPI 2's classes for C++: libmpi_cxx.so.40 needs its address.
# An exception can't pass through the core, so failures end the job.
CLASS_HANDLERS = {"ompi_mpi_errors_throw_exceptions": "MPI_ERRORS_ARE_FATAL"}


@dataclass(frozen=True)
class Constant:
    name: str
    c_type: str
    standard: int
    foreign: str
    fortran: str  # Open MPI's number of a predefined handle, or "-"

    @property
    def number(self):
        value = int(self.foreign, 0)
        return value - (1 << 32) if value >= 1 << 31 else value


class Abi:
    """One of the foreign ABIs, "mpich" or "openmpi", or "standard", whose Fortran library is made alike."""

    def __init__(self, name):
        self.name = name
        self.constants = {
            row["name"]: Constant(
                row["name"], row["type"], int(row["standard"], 0), row[name], row["fortran"])
            for row in standard.read_table("foreign_constants.tsv")
        }

    def matching(self, patterns):
        """The numbers whose names match, without MPI_; those that the ABI lacks are left out."""
        return [
            c
            for c in self.constants.values()
            if c.foreign != "-" and any(re.fullmatch("MPI_" + p, c.name) for p in patterns.split())
        ]

    def handles(self, kind):
        return [
            c
            for c in self.constants.values()
            if c.c_type == f"MPI_{kind}" and c.foreign != "-"
        ]

    def limit(self, name):
        """(the standard's length of a string, the ABI's)."""
        constant = self.constants["MPI_MAX_" + name]
        return constant.standard, int(constant.foreign, 0) if constant.foreign != "-" else constant.standard
