"""Writes .pyi files in which `**options` are the options of the library, for editors and type checkers.

    stubs.write(options, source_folder, target_folder)

`options` is the list of `oriel options --json`. A function that is decorated with @takes("load") gets the options of that
scope as keywords with types, and their help in its docstring. setup.py calls this; the files are not tracked.
"""

import ast
from pathlib import Path
from typing import Any, Dict, List, Union

Row = Dict[str, Any]
TYPES = {
    "bytes": "Union[int, str]", "count": "int", "number": "float", "flag": "bool", "text": "str", "file": "PathLike",
    "files": "Union[PathLike, Sequence[PathLike]]",
    "list": "Union[str, Sequence[int], Sequence[str], Mapping[Any, float]]",
}
JSON = "Union[str, bytes, Mapping[str, Any], Sequence[Any], bool]"
IMPORTS = "import datetime\nimport os\nfrom typing import Any, Literal, Mapping, Optional, Sequence, Union\n"
IMPORTS += "from ._options import Calibration\n"
Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def annotation(row: Row) -> str:
    words = [word for word in row.get("choices", []) if not word[:1].isdigit()]
    kind = TYPES.get(row["type"], "")
    if row["type"] == "choice":
        numbers = [word for word in row["choices"] if word.isdigit()]
        kind = "str" if any(":" in word for word in words) else f"Literal[{', '.join(numbers + [repr(word) for word in words])}]"
        if "on" in words:
            kind = f"Union[bool, {kind}]"
    elif row["type"] in ("count", "bytes") and words:
        kind = f"Union[{kind}, Literal[{', '.join(map(repr, words))}]]"
    elif row["type"] == "text" and row["help"].startswith("JSON"):
        kind = JSON
    if row["name"] == "date":
        kind = f"Union[{kind}, datetime.date]"
    if row["name"] == "calibration":
        kind = f"Union[{kind}, Calibration]"
    return f"Optional[{kind}]".replace("PathLike", 'Union[str, "os.PathLike[str]"]')


def line(row: Row) -> str:
    return f"{row['name']}: {row['help']} (default: {row['default']})"


class Stub(ast.NodeTransformer):
    def __init__(self, options: List[Row]) -> None:
        self.options = options

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        fields: List[ast.stmt] = []
        for function in node.body:
            if isinstance(function, Function) and function.name == "__init__":
                for item in ast.walk(function):
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Attribute):
                        fields.append(ast.AnnAssign(ast.Name(item.target.attr, ast.Store()), item.annotation, None, 1))
        self.generic_visit(node)
        start = 1 if ast.get_docstring(node) else 0
        node.body[start:start] = fields
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        documentation = ast.get_docstring(node) or ""
        for decorator in list(node.decorator_list):
            if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "takes":
                scope = ast.literal_eval(decorator.args[0])
                rows = [row for row in self.options if row["scope"] == scope]
                node.decorator_list.remove(decorator)
                node.args.kwarg = None
                for row in rows:
                    kind = ast.parse(annotation(row), mode="eval").body
                    node.args.kwonlyargs.append(ast.arg(row["name"], kind))
                    node.args.kw_defaults.append(ast.Constant(None))
                documentation = "\n".join([documentation, "", *map(line, rows)])
        node.body = [ast.Expr(ast.Constant(documentation))] if documentation else []
        node.body.append(ast.Expr(ast.Constant(...)))
        return node


def stub(source: str, options: List[Row]) -> str:
    tree = ast.fix_missing_locations(Stub(options).visit(ast.parse(source)))
    documentation, body = (ast.get_docstring(tree) or ""), tree.body[1:]
    tree.body = body
    return f'"""{documentation}"""\n\n{IMPORTS}{ast.unparse(tree)}\n'


def write(options: List[Row], source: Union[str, Path], target: Union[str, Path]) -> None:
    for path in sorted(Path(source).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "@takes(" in text:
            (Path(target) / path.name).with_suffix(".pyi").write_text(stub(text, options), encoding="utf-8")
