"""From the place of an allocation in the source to the name of what is allocated.

    name_at("advect.cpp", 387, 14)     "uBuffer", from `uBuffer.resize(numPoints);`

The source is parsed by tree-sitter (C, C++, Fortran), and the statement around line and column says
the name: a declaration, an assignment, a member's call that makes its object grow, an initialiser of
a constructor, an allocate statement. None where the statement only hands memory on (`return
malloc(n)`): then the caller knows the name.
"""

import functools
import pathlib

from . import files

# Members that allocate for their object.
GROWING = {"resize", "reserve", "push_back", "emplace_back", "assign", "insert", "emplace", "append",
           "allocate", "reset", "shrink_to_fit", "push_front", "emplace_front", "try_emplace",
           "insert_or_assign", "rehash", "create"}
# Functions that write an address to what their first argument points to.
BY_ARGUMENT = {"posix_memalign", "MPI_Alloc_mem", "cudaMallocManaged", "hbw_posix_memalign",
               "asprintf"}
BY_LAST_ARGUMENT = {"MPI_Alloc_mem", "MPI_Win_allocate", "MPI_Win_allocate_shared"}
FORTRAN_SUFFIXES = {".f", ".for", ".f77", ".f90", ".f95", ".f03", ".f08", ".ftn"}


class Unavailable(Exception):
    """tree-sitter or one of its languages is not installed."""


@functools.cache
def _parser(language):
    try:
        import tree_sitter
        if language == "fortran":
            import tree_sitter_fortran as grammar
        else:
            import tree_sitter_cpp as grammar
    except ImportError as problem:
        raise Unavailable(f"names of structures need the Python package {problem.name}") from None
    return tree_sitter.Parser(tree_sitter.Language(grammar.language()))


@functools.lru_cache(256)
def _source(path):
    """The kind and tree of a file; None if it can't be read."""
    try:
        text = files.read_regular(path, files.SOURCE_LIMIT)
    except OSError:
        return None
    kind = "fortran" if pathlib.Path(path).suffix.lower() in FORTRAN_SUFFIXES else "cpp"
    return kind, _parser(kind).parse(text), text.split(b"\n")


def _text(node):
    return " ".join(node.text.decode("utf-8", "replace").split())


def name_at(path, line, column, position=None):
    """The name of what the statement there allocates, or None. `column` 0 is unknown. `position`:
    (i, n), the i-th of n allocations of this statement, where the place alone does not tell."""
    source = _source(path)
    if source is None:
        return None
    kind, tree, lines = source
    if not 1 <= line <= len(lines):
        return None
    text = lines[line - 1]
    if column:
        begin = min(column - 1, len(text))
    else:
        begin = len(text) - len(text.lstrip())
    node = tree.root_node.named_descendant_for_point_range((line - 1, begin),
                                                           (line - 1, min(begin + 1, len(text))))
    if kind == "fortran":
        return _fortran_name(tree.root_node, node, line, begin, position)
    return _cpp_name(node, line, begin)


def _declared(node):
    """The name in a declarator, below pointers, references and arrays."""
    while node is not None and node.type in ("pointer_declarator", "reference_declarator",
                                             "array_declarator", "init_declarator",
                                             "function_declarator", "parenthesized_declarator"):
        inner = node.child_by_field_name("declarator")
        if inner is None:
            inner = node.named_children[0] if node.named_children else None
        node = inner
    return _text(node) if node is not None else None


def _without_this(text):
    return text.removeprefix("this->").removeprefix("(*this).")


def _cpp_name(node, line, column):
    while node is not None:
        kind = node.type
        if kind == "init_declarator":
            return _declared(node)
        if kind == "assignment_expression":
            return _without_this(_text(node.child_by_field_name("left")))
        if kind == "field_initializer" and node.named_children:
            return _text(node.named_children[0])
        if kind == "call_expression":
            name = _name_from_call(node)
            if name:
                return name
        if kind == "declaration":
            declarators = [one for one in node.children_by_field_name("declarator")
                           if one.start_point[0] <= line - 1 <= one.end_point[0]]
            at = [one for one in declarators if one.start_point[1] <= column <= one.end_point[1]]
            if at or declarators:
                return _declared((at or declarators)[0])
        if kind == "field_declaration":
            declarator = node.child_by_field_name("declarator")
            return _declared(declarator) if declarator is not None else None
        if kind in ("return_statement", "function_definition", "lambda_expression"):
            return None
        node = node.parent
    return None


def _name_from_call(call):
    function = call.child_by_field_name("function")
    arguments = call.child_by_field_name("arguments")
    if function is None:
        return None
    if function.type == "field_expression":
        member = function.child_by_field_name("field")
        if member is not None and _text(member) in GROWING:
            return _without_this(_text(function.child_by_field_name("argument")))
        return None
    called = _text(function).rsplit("::", 1)[-1]
    given = [one for one in arguments.named_children if one.type != "comment"] if arguments else []
    if given and called in BY_ARGUMENT | BY_LAST_ARGUMENT:
        if called in ("MPI_Win_allocate", "MPI_Win_allocate_shared") and len(given) > 4:
            target = given[4]
        else:
            target = given[-1] if called in BY_LAST_ARGUMENT else given[0]
        text = _text(target)
        if target.type == "cast_expression":
            text = _text(target.child_by_field_name("value"))
        return _without_this(text.removeprefix("&"))
    return None


def _fortran_name(root, node, line, column, position):
    statement = node
    while statement is not None and statement.type not in ("allocate_statement",
                                                            "assignment_statement"):
        statement = statement.parent
    if statement is None:
        statement = _first_on_line(root, line)
    if statement is None:
        return None
    if statement.type == "assignment_statement":
        left = statement.named_children[0]
        return _array_name(left)
    objects = [child for child in statement.named_children
               if child.type in ("sized_allocation", "call_expression", "derived_type_member_expression",
                                 "identifier")]
    # `allocate(type :: x)` names its type first, and options come as keyword_argument.
    if not objects:
        return None
    at = [one for one in objects
          if one.start_point <= (line - 1, column) < one.end_point]
    if at:
        return _array_name(at[0])
    if position is not None and position[1] == len(objects):
        return _array_name(objects[position[0]])
    return ", ".join(_array_name(one) for one in objects)


def _array_name(node):
    """`a%b` of `a%b(n, m)`, `rate` of `rate(:, 1)`."""
    if node.type in ("sized_allocation", "call_expression") and node.named_children:
        return _text(node.named_children[0])
    return _text(node)


def _first_on_line(node, line):
    """The allocate or assignment statement that covers a line."""
    if node.start_point[0] > line - 1 or node.end_point[0] < line - 1:
        return None
    if node.type in ("allocate_statement", "assignment_statement"):
        return node
    for child in node.named_children:
        found = _first_on_line(child, line)
        if found is not None:
            return found
    return None


def is_handed_on(path, line, column, name):
    """Whether the function around the place returns what it has so named: a local name of memory that
    its caller names."""
    source = _source(path)
    if source is None or source[0] == "fortran" or not 1 <= line <= len(source[2]):
        return False
    begin = max(column - 1, 0)
    node = source[1].root_node.named_descendant_for_point_range((line - 1, begin), (line - 1, begin))
    while node is not None and node.type not in ("function_definition", "lambda_expression"):
        node = node.parent
    return node is not None and _returns(node, name)


def _returns(node, name):
    if node.type == "return_statement":
        return _mentions(node, name)
    return any(_returns(child, name) for child in node.named_children
               if child.type != "lambda_expression")


def _mentions(node, name):
    if node.type == "identifier":
        return _text(node) == name
    if node.type in ("call_expression", "subscript_expression", "field_expression"):
        # f(p), p[0] and p.size() are not p; std::move(p), std::span(p, n) are.
        function = node.child_by_field_name("function")
        if function is None or function.type == "field_expression":
            return False
    return any(_mentions(child, name) for child in node.named_children)
