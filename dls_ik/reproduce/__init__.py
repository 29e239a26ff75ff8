"""Published tables and figures, run again: a module for each paper; ``experiment`` lists them."""
