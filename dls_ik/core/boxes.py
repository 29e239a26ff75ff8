# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Boxes: references to structs of arrays that make calls of kernels from Python faster.

If Python passes a NamedTuple of arrays to a kernel, Numba unpacks every array at each call, which
takes 0.1 us for each array. If Python passes a box, Numba unpacks only the reference, which takes
0.1 us: the struct with the addresses of the arrays was stored in Numba's memory when the box was
made. Python and the kernels share the memory of the arrays, so that changes of array elements are
visible to both. The fields of a boxed struct cannot be replaced, and numbers in it cannot change.
"""

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from dls_ik.core.jit import allocating, numba

Record = TypeVar("Record", bound=NamedTuple)

if TYPE_CHECKING or numba.config.DISABLE_JIT:

    class Boxed(Generic[Record]):
        """Box of a NamedTuple; kernels read the NamedTuple from the field `record`."""

        def __init__(self, record: Record) -> None:
            self.record = record

else:
    from numba.experimental import structref

    @structref.register
    class ReferenceType(numba.types.StructRef):
        """Numba type of a box, a struct reference whose only field is `record`."""

    class Reference(structref.StructRefProxy):
        """Box of a NamedTuple that Python passes to kernels; see the module docstring."""

        __slots__ = ()

        def __class_getitem__(cls, _: type) -> type:
            """Return this class for every argument, so that annotations can be ``Boxed[Chain]``."""
            return cls

    structref.define_proxy(Reference, ReferenceType, ["record"])
    Boxed = Reference


@allocating
def boxed(record: Record) -> Boxed[Record]:
    """Return a box of a NamedTuple.

    Python must call this function instead of the class `Boxed`: this function is stored in the disk
    cache of Numba, whereas the constructor of the class is compiled again in every process.
    """
    return Boxed(record)
