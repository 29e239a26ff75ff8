# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Mutants of a file by cosmic-ray, without those that any test notices."""

from pathlib import Path
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

# Of cosmic-ray's operators those whose mutants are plausible slips. A float shifted or or-ed is
# noticed by any test; the decorators of kernels do nothing when these run as plain Python.
PAIRS = {
    "Binary": "Add_Sub Sub_Add Mul_Div Mul_Add Div_Mul FloorDiv_Mul Mod_Mul Pow_Mul LShift_RShift "
    "RShift_LShift BitAnd_BitOr BitXor_BitAnd",
    "Comparison": "Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt Eq_NotEq NotEq_Eq "
    "Is_IsNot IsNot_Is",
    "Unary": "Delete_USub Delete_Not",
}
OTHERS = [
    "AddNot",
    "ExceptionReplacer",
    "NumberReplacer",
    "ReplaceAndWithOr",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ReplaceFalseWithTrue",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ZeroIterationForLoop",
]
OPERATORS = [
    f"core/Replace{kind}Operator_{pair}" for kind, pairs in PAIRS.items() for pair in pairs.split()
] + [f"core/{name}" for name in OTHERS]

# Files that tests of plain Python cannot judge.
LEFT_OUT = {"dls_ik/core/jit.py": "the compiler's options"}


class Mutant(NamedTuple):
    """One change of one file."""

    path: str  # path relative to the root of the repository
    line: int  # counted from 1
    operator: str
    occurrence: int  # index among the operator's places in the file

    def code(self, root: Path) -> str:
        """Return the file with the change."""
        source = (root / self.path).read_text()
        changed = mutate_code(source, operator(self.operator), self.occurrence)
        assert changed is not None, self
        return changed


def operator(name: str):
    return get_operator(name)()


def mutants(root: Path, path: str) -> list[Mutant]:
    """Return all mutants of a file."""
    if path in LEFT_OUT:
        return []
    nodes = list(ast_nodes(get_ast((root / path).read_text())))
    return [
        Mutant(path, start[0], name, occurrence)
        for name in OPERATORS
        for occurrence, (start, _) in enumerate(
            place for node in nodes for place in operator(name).mutation_positions(node)
        )
    ]
