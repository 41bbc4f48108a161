#!/usr/bin/env python3
"""Compare the headers, and a built library, with the interface of mlx-c 0.6.0.

  check_abi.py                       headers against functions.tsv and types.tsv, then compilers
  check_abi.py --lib libmlxc.so      also what the library exports
  check_abi.py --lib ... --complete  also fail when one of the functions is not exported

1. Each prototype and type of include/mlx/c is compared with the tables, token by token.
2. Each header must compile alone as C17 and C++17, without a warning.
3. The compiler compares the tables with mlx.h once more: a pointer of the table's type to every
   function, and the value of every enumerator.
4. The library may export functions of the table and rp_*, nothing else.

The exit status is 0 if all of it holds.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
HEADERS = """array closure compile cuda device distributed distributed_group error export fast fft
graph_utils half io io_types linalg map memory metal mlx ops optional random stream string
transforms transforms_impl vector version""".split()
# Types that depend on the compiler; the headers define them under conditions.
SCALARS = {"float16_t": "half.h", "bfloat16_t": "half.h", "mlx_complex64_t": "array.h"}
LINKER_SYMBOLS = {"_init", "_fini", "_edata", "_end", "__bss_start"}

problems = 0


def problem(text):
    global problems
    problems += 1
    print("FAIL " + text)


def tokens(text):
    return re.findall(r"\.\.\.|\w+|[^\s\w]", text)


def split_outside(text, separator):
    """Split where no bracket is open; no empty parts."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "({") - (c in ")}")
        if c == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in parts + [text[start:]] if p.strip()]


def read_table(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f][1:]


def statements(path):
    """The declarations of a header, without comments and preprocessor lines."""
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)
    text = re.sub(r"^[ \t]*#.*$", "", text, flags=re.M)
    text = text.replace('extern "C" {', "")
    text = re.sub(r"}\s*$", "", text)
    return split_outside(text, ";")


def parse_header(path):
    """(functions: name -> (result, parameters), types: name -> tokens) as lists of tokens."""
    functions, types = {}, {}
    for s in statements(path):
        words = tokens(s)
        if words[0] == "__extension__":
            words = words[1:]
        if words[0] == "typedef":
            pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)", s)
            is_function = pointer and "{" not in s
            types[pointer.group(1) if is_function else words[-1]] = words[1:]
            continue
        m = re.match(r"(.*?)(\w+)\s*\((.*)\)$", s, re.S)
        if not m:
            problem("%s: cannot read '%s'" % (os.path.basename(path), s))
            continue
        if m.group(2) in functions:
            problem("%s is declared twice" % m.group(2))
        parameters = [tokens(p) for p in split_outside(m.group(3), ",")]
        functions[m.group(2)] = (tokens(m.group(1)), parameters)
    return functions, types


def expected_type(kind, name, definition):
    if kind == "fnptr":
        return tokens(definition)
    tag = name + "_"
    if kind == "enum":
        values = ", ".join(split_outside(definition, ","))
        return tokens("enum %s { %s } %s" % (tag, values, name))
    return tokens("struct %s { %s } %s" % (tag, definition, name))


def compare_functions(declared, table):
    for header, result, name, parameters in table:
        if name not in declared[header][0]:
            problem("%s: %s is not declared" % (header, name))
            continue
        got_result, got = declared[header][0][name]
        want = [tokens(p) for p in split_outside(parameters, ",")]
        if got_result != tokens(result):
            problem("%s: result is '%s', not '%s'" % (name, " ".join(got_result), result))
        if len(got) != len(want):
            problem("%s: %d parameters, not %d" % (name, len(got), len(want)))
        for i, (g, w) in enumerate(zip(got, want)):
            if g != w:
                problem("%s: parameter %d is '%s', not '%s'"
                        % (name, i + 1, " ".join(g), " ".join(w)))
    known = {(row[0], row[2]) for row in table}
    for header, (functions, _) in declared.items():
        for name in functions:
            if (header, name) not in known:
                problem("%s: %s is not in the table" % (header, name))


def compare_types(declared, table):
    for header, kind, name, definition in table:
        name = name or re.search(r"\(\s*\*\s*(\w+)", definition).group(1)
        kind = kind.split()[0]
        got = declared[header][1].pop(name, None)
        want = expected_type(kind, name, definition)
        if got is None:
            problem("%s: type %s is missing" % (header, name))
        elif got != want:
            problem("%s: '%s' is not '%s'" % (header, " ".join(got), " ".join(want)))
    for name, header in SCALARS.items():
        if declared[header][1].pop(name, None) is None:
            problem("%s: type %s is missing" % (header, name))
    for header, (_, types) in declared.items():
        for name in types:
            problem("%s: type %s is not in the table" % (header, name))


def compiles(command, source, what):
    flags = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
    flags.append("-I" + os.path.join(ROOT, "include"))
    run = subprocess.run(command + flags + [source], capture_output=True, text=True)
    if run.returncode:
        problem("%s with %s:\n%s" % (what, " ".join(command), run.stderr.strip()))


def compiler_check(functions, types):
    """A C and C++ file that compiles only if mlx.h says what the tables say."""
    out = ['#include "mlx/c/mlx.h"', "#ifdef __cplusplus", "#define CHECK(e) static_assert(e, #e)",
           "#else", '#define CHECK(e) _Static_assert(e, #e)', "#endif"]
    for header, kind, name, definition in types:
        if kind == "enum":
            for i, value in enumerate(split_outside(definition, ",")):
                out.append("CHECK(%s == %d);" % (value, i))
        elif definition == "void* ctx;":
            out.append("CHECK(sizeof(%s) == sizeof(void*));" % name)
    for scalar, size in (("float16_t", 2), ("bfloat16_t", 2), ("mlx_complex64_t", 8)):
        out.append("CHECK(sizeof(%s) == %d);" % (scalar, size))
    for i, (header, result, name, parameters) in enumerate(functions):
        out.append("%s (*pointer_%d)(%s) = %s;" % (result, i, parameters, name))
    return "\n".join(out) + "\n"


def compile_all(functions, types):
    languages = [c for c in (["gcc", "-x", "c", "-std=c17"], ["g++", "-x", "c++", "-std=c++17"])
                 if shutil.which(c[0])]
    extra = sorted(os.listdir(os.path.join(ROOT, "include", "reprise")))
    paths = ["mlx/c/%s.h" % h for h in HEADERS]
    paths += ["reprise/" + h for h in extra if h.endswith(".h")]
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "table.c")
        with open(table, "w", encoding="utf-8") as f:
            f.write(compiler_check(functions, types))
        alone = os.path.join(folder, "alone.c")
        for command in languages:
            for path in paths:
                with open(alone, "w", encoding="utf-8") as f:
                    f.write('#include "%s"\n#include "%s"\n' % (path, path))
                compiles(command, alone, path + " alone")
            compiles(command, table, "the tables against mlx.h")
    return [c[0] for c in languages], len(paths)


def check_library(path, table, complete):
    run = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True)
    if run.returncode:
        problem("nm: " + run.stderr.strip())
        return
    # Versioned symbols are printed as name@version.
    exported = {line.split()[-1].split("@")[0] for line in run.stdout.splitlines() if line.strip()}
    known = {row[2] for row in table}
    print("%d of the %d functions are exported" % (len(known & exported), len(known)))
    for name in sorted(exported - known - LINKER_SYMBOLS):
        if not name.startswith("rp_"):
            problem("the library exports %s" % name)
    missing = sorted(known - exported)
    if complete:
        for name in missing:
            problem("the library does not export %s" % name)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--lib", help="a built libmlxc.so")
    p.add_argument("--complete", action="store_true", help="every function must be exported")
    args = p.parse_args()
    if args.complete and not args.lib:
        p.error("--complete needs --lib")

    functions, types = read_table("functions.tsv"), read_table("types.tsv")
    folder = os.path.join(ROOT, "include", "mlx", "c")
    declared = {}
    for h in HEADERS:
        path = os.path.join(folder, h + ".h")
        if os.path.exists(path):
            declared[h + ".h"] = parse_header(path)
        else:
            declared[h + ".h"] = ({}, {})
            problem("%s.h does not exist" % h)
    for name in sorted(set(os.listdir(folder)) - set(declared)):
        problem("%s is not one of the headers" % name)

    compare_functions(declared, functions)
    compare_types(declared, types)
    languages, headers = compile_all(functions, types)
    print("%d functions and %d types compared; %d headers compiled alone with %s"
          % (len(functions), len(types) + len(SCALARS), headers,
             " and ".join(languages) or "nothing"))
    if args.lib:
        check_library(args.lib, functions, args.complete)
    print("%d problems" % problems if problems else "ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
