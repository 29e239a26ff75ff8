"""A web page that shows an arm following a target, on viser."""
