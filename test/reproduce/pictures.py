# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Check of a picture."""

import io

import numpy as np
from matplotlib.image import imread


def shows_something(figure):
    """Return whether a share of the pixels, of several colours, is not white."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=60)
    buffer.seek(0)
    pixels = np.round(imread(buffer)[..., :3] * 8.0)
    drawn = np.any(pixels < 8.0, axis=-1)
    return 0.01 < drawn.mean() < 0.9 and len(np.unique(pixels[drawn], axis=0)) > 8
