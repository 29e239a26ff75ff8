"""``python -m dls_ik.ros.demo``: the WAM arm solved and moving, through a real ``ik_node``.

The node runs as a process of its own; this one is a client like any other, and trusts nothing that
the node says about itself: answers are checked by another library's kinematics.
"""
