# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=bash
# Sourced by scripts that start nodes: they meet only nodes of the same run on this machine.
export ROS_DOMAIN_ID=${DLS_IK_DOMAIN_ID:-$((1 + RANDOM % 100))}
export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST
[[ ${ROS_DISTRO:-} != humble ]] || export ROS_LOCALHOST_ONLY=1 # the same, as Humble knows it
unset _ROS_WHEELS_BOOTSTRAP_COMPLETE
