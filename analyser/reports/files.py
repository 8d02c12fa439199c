"""Opening the files that a recording names: whatever is there by now (a pipe, a device, a huge file),
reading it neither waits nor takes all memory."""

import errno
import os
import stat

# Bytes of a source, of a program or library (which is mapped), and of a description of a process.
SOURCE_LIMIT, PROGRAM_LIMIT, DESCRIPTION_LIMIT = 16 << 20, 16 << 30, 64 << 20


def open_regular(path, most):
    """A regular file of at most `most` bytes, open for reading bytes; anything else is an OSError."""
    path = os.fspath(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except ValueError:  # a 0 in it, or what no encoding has
        raise OSError(errno.EINVAL, "is no path", path) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is no regular file", path)
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"has more than {most} bytes", path)
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def read_regular(path, most):
    """The bytes of such a file."""
    with open_regular(path, most) as file:
        data = file.read(most + 1) or b""
    if len(data) > most:  # /proc has files whose size is 0
        raise OSError(errno.EFBIG, f"has more than {most} bytes", os.fspath(path))
    return data
