# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures of docs/pictures.md by running its snippets.

The pictures are reproducible except for the measured times in plot_compare_results.png. A palette
of colours keeps the files small.

    python docs/make_pictures.py [FOLDER]
"""

import os
import re
import sys
from pathlib import Path

from PIL import Image

PAGE = Path(__file__).resolve().parent / "pictures.md"
COLOURS = 200  # of a picture


def main(folder: Path) -> None:
    """Run all snippets in a folder, and reduce the colours of their pictures."""
    snippets = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    os.chdir(folder)
    exec(compile("\n".join(snippets), PAGE.name, "exec"), {})
    for name in re.findall(r'savefig\("(.+?)"\)', "\n".join(snippets)):
        with Image.open(name) as picture:
            small = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        small.save(name, optimize=True)
        sys.stdout.write(f"{folder / name}: {Path(name).stat().st_size / 1e3:.0f} kB\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE.parent / "images")
