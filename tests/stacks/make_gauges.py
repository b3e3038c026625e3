"""Wraps every public function in a measurement of its stack: make_gauges.py OUT HEADER...

Each gets __wrap_NAME for the linker's --wrap=NAME.
"""
import pathlib
import re
import sys

DECLARATION = re.compile(r"^ORIEL(?:_TOOLS)?_API\s+([\w\s]+[\s*])(oriel_\w+)\(([^()]*)\);", re.M)


def wrapper(place, result, name, arguments):
    names = [] if arguments == "void" else [re.search(r"(\w+)(\[\w*\])?$", one).group(1) for one in arguments.split(", ")]
    return (f"{result} __real_{name}({arguments});\n"
            f"{result} __wrap_{name}({arguments}) {{\n"
            f"  const oriel_internal::test::CallGauge gauge(&oriel_internal::test::calls_measured[{place}]);\n"
            f"  return __real_{name}({', '.join(names)});\n}}\n")


def main():
    out, *headers = sys.argv[1:]
    text = "\n".join(re.sub(r"/\*.*?\*/", "", pathlib.Path(one).read_text(encoding="utf-8"), flags=re.S)
                     for one in headers)
    found = [(result.strip(), name, " ".join(arguments.split())) for result, name, arguments in DECLARATION.findall(text)]
    rows = ", ".join(f'{{"{name}"}}' for _, name, _ in found)
    pathlib.Path(out).write_text(
        "#include <oriel/advanced.h>\n#include <oriel/tools.h>\n#include \"support/painted_stacks.h\"\n"
        "namespace oriel_internal::test {\n"
        f"MeasuredCall calls_measured[] = {{{rows}}};\nconst size_t calls_measured_count = {len(found)};\n}}\n"
        + "extern \"C\" {\n" + "".join(wrapper(place, *one) for place, one in enumerate(found)) + "}\n",
        encoding="utf-8")


main()
