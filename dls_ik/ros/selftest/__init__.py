"""Whether ROS works here: messages between two processes, and a node that starts and answers."""
