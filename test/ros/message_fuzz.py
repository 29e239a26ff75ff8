"""Good requests, and likely words, of which fields at any depth are changed."""

from ros_arms import TIPS, fk_request, place, request

NAMES = ("", "/", *TIPS, "base", "left_arm", "both_arms", "left_wam_j2", "right_wam_link4", "table")
GOOD = (
    request(place(TIPS[0], left_wam_j2=0.7)),
    request(
        group_name="both_arms",
        ik_link_names=list(TIPS),
        pose_stamped_vector=[place(tip, "base", right_wam_j4=1.4) for tip in TIPS],
    ),
    fk_request(TIPS, "left_wam_link4"),
)
