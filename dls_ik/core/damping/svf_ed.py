"""SVF+ED, singular value filtering with error damping: a bounded condition number, small far steps.

sum_i h(s_i) / (h(s_i)^2 + E) v_i u_i^T, h of SVF and E of ED (Colome & Torras 2012, Table V).
"""

NAME = "svf+ed"
