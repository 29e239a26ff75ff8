// SPDX-FileCopyrightText: The dls_ik developers
// SPDX-License-Identifier: Apache-2.0
//
// Echo node on rcl: publishes joint_states on each target_pose, with its position as joint
// positions. Messages stay serialized (CDR, little-endian), and nothing is computed: the practical
// limit for a node that answers targets. benchmarks/native_echo.py compiles it.

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "geometry_msgs/msg/pose_stamped.h"
#include "rcl/error_handling.h"
#include "rcl/rcl.h"
#include "sensor_msgs/msg/joint_state.h"

#define JOINTS 7
#define ENCAPSULATION 4  // bytes before the fields, from whose end fields are aligned
#define WAIT_NS 100000000

static volatile sig_atomic_t is_stopped = 0;

static void stop(int number) {
  (void)number;
  is_stopped = 1;
}

static void check(rcl_ret_t code, const char *what) {
  if (code != RCL_RET_OK) {
    fprintf(stderr, "%s: %s\n", what, rcl_get_error_string().str);
    exit(1);
  }
}

static size_t aligned(size_t at, size_t size) { return (at + size - 1) / size * size; }

// Append a number of `size` bytes to the fields, which are aligned by their size.
static size_t put(uint8_t *fields, size_t at, const void *value, size_t size) {
  at = aligned(at, size);
  memcpy(fields + at, value, size);
  return at + size;
}

// Write a JointState with JOINTS names, positions and velocities, and return the size of its
// fields. `positions` becomes the place of the positions.
static size_t write_joint_state(uint8_t *fields, size_t *positions) {
  const uint32_t count = JOINTS, none = 0, empty = 1, length = 8;  // lengths include the NUL
  const double zero = 0.0;
  size_t at = put(fields, 8, &empty, 4);  // the stamp is at 0, frame_id is empty
  fields[at++] = 0;
  at = put(fields, at, &count, 4);
  for (int i = 0; i < JOINTS; i++) {
    at = put(fields, at, &length, 4);
    memcpy(fields + at, "joint_1", length);
    fields[at + 6] = (uint8_t)('1' + i);
    at += length;
  }
  for (int array = 0; array < 2; array++) {
    at = put(fields, at, &count, 4);
    for (int i = 0; i < JOINTS; i++) {
      at = put(fields, at, &zero, 8);
      if (array == 0 && i == 0) {
        *positions = at - 8;
      }
    }
  }
  return put(fields, at, &none, 4);  // no efforts
}

int main(int argc, char **argv) {
  signal(SIGINT, stop);
  signal(SIGTERM, stop);
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_context_t context = rcl_get_zero_initialized_context();
  rcl_init_options_t init_options = rcl_get_zero_initialized_init_options();
  check(rcl_init_options_init(&init_options, allocator), "options");
  check(rcl_init(argc, (const char *const *)argv, &init_options, &context), "init");
  rcl_node_t node = rcl_get_zero_initialized_node();
  rcl_node_options_t node_options = rcl_node_get_default_options();
  check(rcl_node_init(&node, "native_echo", "", &context, &node_options), "node");

  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  rcl_publisher_options_t publisher_options = rcl_publisher_get_default_options();
  publisher_options.qos.depth = 1;
  check(rcl_publisher_init(&publisher, &node,
                           ROSIDL_GET_MSG_TYPE_SUPPORT(sensor_msgs, msg, JointState),
                           "joint_states", &publisher_options),
        "publisher");
  rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
  rcl_subscription_options_t subscription_options = rcl_subscription_get_default_options();
  subscription_options.qos.depth = 1;
  subscription_options.qos.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  check(rcl_subscription_init(&subscription, &node,
                              ROSIDL_GET_MSG_TYPE_SUPPORT(geometry_msgs, msg, PoseStamped),
                              "target_pose", &subscription_options),
        "subscription");
  rcl_wait_set_t wait_set = rcl_get_zero_initialized_wait_set();
  check(rcl_wait_set_init(&wait_set, 1, 0, 0, 0, 0, 0, &context, allocator), "wait set");

  rcl_serialized_message_t target = rmw_get_zero_initialized_serialized_message();
  rcl_serialized_message_t command = rmw_get_zero_initialized_serialized_message();
  check(rmw_serialized_message_init(&target, 1024, &allocator), "target");
  check(rmw_serialized_message_init(&command, 1024, &allocator), "command");
  memset(command.buffer, 0, command.buffer_capacity);
  command.buffer[1] = 1;  // little-endian CDR
  uint8_t *fields = command.buffer + ENCAPSULATION;
  size_t positions = 0;
  command.buffer_length = ENCAPSULATION + write_joint_state(fields, &positions);
  printf("ready\n");
  fflush(stdout);

  while (!is_stopped) {
    check(rcl_wait_set_clear(&wait_set), "clear");
    check(rcl_wait_set_add_subscription(&wait_set, &subscription, NULL), "add");
    rcl_ret_t found = rcl_wait(&wait_set, WAIT_NS);
    if (found == RCL_RET_TIMEOUT || is_stopped) {
      continue;
    }
    check(found, "wait");
    if (rcl_take_serialized_message(&subscription, &target, NULL, NULL) != RCL_RET_OK) {
      rcl_reset_error();
      continue;
    }
    // The stamp, and the frame with its length; then the position, aligned.
    uint32_t length = 0;
    const uint8_t *given = target.buffer + ENCAPSULATION;
    memcpy(&length, given + 8, 4);
    size_t position = aligned(12 + length, 8);
    if (ENCAPSULATION + position + 24 > target.buffer_length) {
      continue;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int32_t seconds = (int32_t)now.tv_sec;
    uint32_t nanoseconds = (uint32_t)now.tv_nsec;
    memcpy(fields, &seconds, 4);
    memcpy(fields + 4, &nanoseconds, 4);
    memcpy(fields + positions, given + position, 24);
    check(rcl_publish_serialized_message(&publisher, &command, NULL), "publish");
  }
  check(rcl_publisher_fini(&publisher, &node), "publisher");
  check(rcl_subscription_fini(&subscription, &node), "subscription");
  check(rcl_wait_set_fini(&wait_set), "wait set");
  check(rcl_node_fini(&node), "node");
  check(rcl_shutdown(&context), "shutdown");
  return 0;
}
