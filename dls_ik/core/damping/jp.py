"""JP, the Moore-Penrose pseudoinverse: singular values as they are, nothing added.

J+ = sum_i 1/s_i v_i u_i^T (Colome & Torras 2012, (2), Table II; Whitney 1969).
"""

NAME = "jp"
