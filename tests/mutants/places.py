# places: finds the places of the program that a mutant changes, and compiles mutants in.
#
# Most mutants are compiled into one program, which decides at run time by mutant_is() (switch.h)
# which of them is active. For mutant 17, `a < b` becomes
#
#     ({ __auto_type l17 = (a); __auto_type r17 = (b);
#        mutant_is(17, (l17 < r17) != (l17 <= r17)) ? l17 <= r17 : l17 < r17; })
#
# Mutants that C doesn't allow this for (the length of an array, the value of an enum's member, an
# element of a static table, a #define), and all mutants of the Lua scripts, are built alone.
#
# SPDX-License-Identifier: MIT

import collections
import glob
import re

import clang.cindex as clang

FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-Ilib", "-Icmd", "-Ibuild/gen"]
RECORD_MACROS = clang.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
LOGIC = {"&&": "||", "||": "&&"}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "&": "|", "|": "&"}
ASSIGNMENTS = {"+=": "-=", "-=": "+="}
RETURNS = {"true": "false", "false": "true", "RLOCK_OK": "RLOCK_E_SERVER",
           "RLOCK_PENDING": "RLOCK_OK", "RLOCK_BUSY": "RLOCK_LOST", "RLOCK_LOST": "RLOCK_OK",
           "RLOCK_E_UNREACHABLE": "RLOCK_E_REFUSED", "RLOCK_E_PROTOCOL": "RLOCK_OK",
           "RLOCK_TIMEOUT": "RLOCK_OK"}


class Place:
    """One mutant: in the file `path`, `old` at `offset` becomes `new`.

    `edits` are the texts to insert and to replace that compile the mutant in, as (start, end, text,
    is_suffix), with %d where the mutant's number belongs; None if it has to be built alone.
    """

    def __init__(self, path, text, function, offset, end, new, kind, edits):
        self.path, self.function, self.kind = path, function, kind
        self.offset, self.old, self.new, self.edits = offset, text[offset:end], new, edits
        self.line = text.count("\n", 0, offset) + 1
        self.last_line = self.line + self.old.count("\n")
        # A mutant is known by its line of code. The comment is cut off: a new wording changes no
        # mutant.
        self.source = one_line(re.sub(r"/\*.*", "", text.splitlines()[self.line - 1]))
        self.number = 0  # set for mutants that are compiled in
        self.key = None

    def change(self):
        return "%s: %s -> %s" % (self.kind, one_line(self.old), one_line(self.new))

    def __str__(self):
        return "%s:%d: %s: %s" % (self.path, self.line, self.change(), self.source)


def one_line(text):
    return re.sub(r"\s+", " ", text).strip()[:90]


def name_all(places):
    """Gives each place a key that stays the same when comments or other functions change."""
    seen = collections.Counter()
    for place in places:
        key = (place.path, place.function, place.change(), place.source)
        seen[key] += 1
        place.key = "\t".join(key + (str(seen[key]),))


# ---- places in C files ---------------------------------------------------------------------------

class Finder:
    """Finds the places of one C file."""

    def __init__(self, path):
        self.path = path
        self.text = open(path, "rb").read().decode("latin-1")  # libclang counts bytes
        self.function = ""
        self.places = []
        self.unit = clang.Index.create().parse(path, args=FLAGS, options=RECORD_MACROS)
        self.macros = set()
        for node in self.unit.cursor.get_children():
            if node.kind == clang.CursorKind.MACRO_INSTANTIATION and self.is_here(node):
                self.macros.update(range(*extent(node)))

    def is_here(self, node):
        return node.location.file is not None and node.location.file.name == self.path

    def add(self, start, end, new, kind, edits):
        if start < end:
            self.places.append(Place(self.path, self.text, self.function, start, end, new, kind,
                                     edits))

    def wrap(self, start, end, before, after):
        return [(start, start, before, False), (end, end, after, True)]

    def operator_between(self, left, right):
        """The operator behind the operand that ends at `left`: its offset and itself."""
        found = re.compile(r"\s*([-+*/&|<>=!]+)").match(self.text, left, right)
        return (found.start(1), found.group(1)) if found else (None, None)

    def operator(self, node, is_constant):
        children = list(node.get_children())
        if len(children) != 2:
            return
        (start, left), (right, end) = extent(children[0]), extent(children[1])
        at, old = self.operator_between(left, right)
        new = {**COMPARISONS, **LOGIC, **ARITHMETIC, **ASSIGNMENTS}.get(old)
        if new is None or not is_valid(old, *children):
            return
        middle = at + len(old)
        if old in LOGIC:
            sign = "!=" if old == "&&" else "=="
            edits = [(start, start, "({ _Bool l%d = (", False),
                     (at, middle, "); l%%d %s mutant_is(%%d, 1) ? (_Bool)(" % sign, False),
                     (end, end, ") : l%d; })", True)]
        elif old in ASSIGNMENTS:
            edits = self.wrap(right, end, "(mutant_is(%d, 1) ? -1 : 1) * (", ")")
        else:
            matters = "(l%%d %s r%%d) != (l%%d %s r%%d)" % (old, new) if old in COMPARISONS else "1"
            edits = [(start, start, "({ __auto_type l%%d = %s(" % promoted(children[0]), False),
                     (at, middle, "); __auto_type r%%d = %s(" % promoted(children[1]), False),
                     (end, end, "); mutant_is(%%d, %s) ? l%%d %s r%%d : l%%d %s r%%d; })" %
                      (matters, new, old), True)]
        self.add(at, middle, new, "operator", None if is_constant else edits)

    def condition(self, node, is_constant):
        start, end = extent(next(node.get_children()))
        self.add(start, end, "!(%s)" % self.text[start:end], "condition",
                 None if is_constant else
                 self.wrap(start, end, "(mutant_is(%d, 1) != !!(", "))"))

    def statement(self, node):
        kinds = clang.CursorKind
        start, end = extent(node)
        if start in self.macros:
            return
        kind = {kinds.CALL_EXPR: "call left out", kinds.BINARY_OPERATOR: "assignment left out",
                kinds.COMPOUND_ASSIGNMENT_OPERATOR: "assignment left out"}.get(node.kind)
        if node.kind == kinds.CSTYLE_CAST_EXPR and \
                any(child.kind == kinds.CALL_EXPR for child in node.get_children()):
            kind = "call left out"  # (void)function();
        if kind:
            self.add(start, end, "(void)0", kind,
                     self.wrap(start, end, "(mutant_is(%d, 1) ? (void)0 : (void)(", "))"))

    def result(self, node):
        start, end = extent(node)
        value = self.text[start + len("return"):end].strip()
        if value in RETURNS:
            start = end - len(value)
            self.add(start, end, RETURNS[value], "result",
                     self.wrap(start, end, "(mutant_is(%%d, 1) ? %s : " % RETURNS[value], ")"))

    def number(self, node, is_constant):
        start, end = extent(node)
        if re.fullmatch(r"[0-9]+", self.text[start:end]):
            new = str(int(self.text[start:end]) + 1)
            self.add(start, end, new, "constant", None if is_constant else
                     self.wrap(start, end, "(mutant_is(%%d, 1) ? %s : " % new, ")"))

    def visit(self, node, parent, is_constant):
        kinds = clang.CursorKind
        # Make no mutants of sizeof, and of the array length of a parameter, which C ignores.
        if node.kind in (kinds.STATIC_ASSERT, kinds.CXX_UNARY_EXPR, kinds.PARM_DECL):
            return
        start, end = extent(node)
        if start in self.macros and end - 1 in self.macros:
            return
        if node.kind == kinds.FUNCTION_DECL:
            self.function, is_constant = node.spelling, False
        elif node.kind in (kinds.ENUM_CONSTANT_DECL, kinds.FIELD_DECL):
            is_constant = True
        elif node.kind == kinds.VAR_DECL:
            is_constant = parent.kind == kinds.TRANSLATION_UNIT or \
                node.storage_class == clang.StorageClass.STATIC
        elif node.kind in (kinds.BINARY_OPERATOR, kinds.COMPOUND_ASSIGNMENT_OPERATOR):
            self.operator(node, is_constant)
        elif node.kind == kinds.RETURN_STMT:
            self.result(node)
        elif node.kind == kinds.INTEGER_LITERAL:
            self.number(node, is_constant)
        children = list(node.get_children())
        if node.kind in (kinds.IF_STMT, kinds.CONDITIONAL_OPERATOR) or \
                (node.kind == kinds.WHILE_STMT and len(children) == 2):
            self.condition(node, is_constant)
        for i, child in enumerate(children):
            is_last = i == len(children) - 1
            if node.kind == kinds.COMPOUND_STMT or (node.kind == kinds.IF_STMT and i > 0) or \
                    (is_last and node.kind in (kinds.CASE_STMT, kinds.DEFAULT_STMT,
                                               kinds.FOR_STMT, kinds.WHILE_STMT)):
                self.statement(child)
            if node.kind == kinds.CASE_STMT and not is_last:
                continue
            is_length = node.kind == kinds.VAR_DECL and "=" not in \
                self.text[start:extent(child)[0]]
            self.visit(child, node, is_constant or is_length)

    def find(self):
        for node in self.unit.cursor.get_children():
            if self.is_here(node) and not node.kind.is_preprocessing():
                self.function = ""
                self.visit(node, self.unit.cursor, True)
        self.function = ""
        for define in re.finditer(r'^#define \w+ ([^"\n]*)$', self.text, re.M):
            for found in re.finditer(r"(?<![\w.])[0-9]+(?!\w)", define.group(1).split("/*")[0]):
                at = define.start(1) + found.start()
                self.add(at, at + len(found.group()), str(int(found.group()) + 1), "constant", None)
        return self.places


def extent(node):
    return node.extent.start.offset, node.extent.end.offset


def promoted(operand):
    """The sign that makes an int of a bit-field, as __auto_type can't have the type of one."""
    found = operand
    while found.kind == clang.CursorKind.UNEXPOSED_EXPR:  # an implicit conversion
        found = next(found.get_children(), operand)
    return "+" if found.referenced is not None and found.referenced.is_bitfield() else ""


def is_valid(operator, left, right):
    """Does C allow the changed operator between operands of these types?"""
    kinds = clang.TypeKind
    pointers = [operand.type.get_canonical().kind in (kinds.POINTER, kinds.CONSTANTARRAY,
                                                      kinds.INCOMPLETEARRAY)
                for operand in (left, right)]
    if operator == "+":
        return not pointers[1]
    return not (operator == "-" and all(pointers))


def with_mutants(path, places):
    """The text of a C file into which these places are compiled."""
    text = open(path, "rb").read().decode("latin-1")
    inserted = collections.defaultdict(lambda: ([], []))  # offset: suffixes, prefixes
    replaced = {}
    for place in places:  # outer places come before the places in them
        for start, end, new, is_suffix in place.edits:
            new = new.replace("%d", str(place.number))
            if start < end:
                replaced[start] = (end, new)
            elif is_suffix:
                inserted[start][0].insert(0, new)
            else:
                inserted[start][1].append(new)
    parts, done = [], 0
    for offset in sorted(set(inserted) | set(replaced)):
        parts.append(text[done:offset])
        suffixes, prefixes = inserted[offset]
        parts += suffixes + prefixes
        done = offset
        if offset in replaced:
            done, new = replaced[offset]
            parts.append(new)
    parts.append(text[done:])
    return '#include "base/mutant_switch.h"\n#line 1\n' + "".join(parts)


# ---- places in Lua files -------------------------------------------------------------------------

LUA_TOKEN = re.compile(r"""--\[\[.*?\]\]|--[^\n]*|"[^"\n]*"|'[^'\n]*'"""
                       r"""|[A-Za-z_]\w*|\d+|[<>=~]=|[<>]|\.\.|.""", re.S)
LUA_CHANGES = {"==": "~=", "~=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "and": "or",
               "or": "and", "not": "", "true": "false", "false": "true", "+": "-", "-": "+"}
LUA_CALL = re.compile(r"^[ \t]*(redis\.p?call\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\))$", re.M)


def lua_places(path):
    text = open(path).read()

    def place(found, group, new, kind):
        return Place(path, text, "", found.start(group), found.end(group), new, kind, None)

    for found in LUA_TOKEN.finditer(text):
        token = found.group(0)
        if token in LUA_CHANGES:
            yield place(found, 0, LUA_CHANGES[token], "operator")
        elif token.isdigit():
            yield place(found, 0, str(int(token) + 1), "constant")
    for found in LUA_CALL.finditer(text):
        yield place(found, 1, "do end", "call left out")


# ---- all places of the program -------------------------------------------------------------------

def all_places():
    places = []
    for path in sorted(glob.glob("lib/**/*.c", recursive=True) +
                       glob.glob("cmd/**/*.c", recursive=True)):
        if not path.endswith(("_absent.c", "_linked.c")):
            places += Finder(path).find()
    for path in sorted(glob.glob("lib/lua/**/*.lua", recursive=True)):
        places += lua_places(path)
    name_all(places)
    number = 0
    for place in places:
        if place.edits:
            number += 1
            place.number = number
    return places
