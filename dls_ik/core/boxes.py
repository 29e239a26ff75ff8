# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Boxes: references to structs of arrays, which Python hands over to kernels again and again.

Numba wraps every array of a struct at each call from Python, which takes 0.1 us for each array. A
box is wrapped once: its struct stays in memory of Numba, with the addresses of the arrays, and a
call takes 0.1 us for the whole box. The arrays are shared with Python, not copied, so that a kernel
and Python see what the other one writes to them. Numbers are copied, and the fields of a boxed
struct never change.
"""

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from dls_ik.core.jit import allocating, numba

Record = TypeVar("Record", bound=NamedTuple)

if TYPE_CHECKING or numba.config.DISABLE_JIT:

    class Boxed(Generic[Record]):
        """A reference to a struct; kernels read the struct from the field `record`."""

        def __init__(self, record: Record) -> None:
            self.record = record

else:
    from numba.experimental import structref

    @structref.register
    class ReferenceType(numba.types.StructRef):
        """Numba's type of a reference to a struct, with the field `record`."""

    class Reference(structref.StructRefProxy):
        """A reference to a struct of Numba, which Python hands over to kernels."""

        __slots__ = ()

        def __class_getitem__(cls, _: type) -> type:
            """Return this class; annotations name the type of the struct."""
            return cls

    structref.define_proxy(Reference, ReferenceType, ["record"])
    Boxed = Reference


@allocating
def boxed(record: Record) -> Boxed[Record]:
    """Return a box of a struct. Python must call this kernel, not the class, which has no cache."""
    return Boxed(record)
