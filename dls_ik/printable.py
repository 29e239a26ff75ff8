"""Words of others in lines of ours."""


def plain(text: str, keep: str = "") -> str:
    """The text with all that steers a terminal or begins a line written out, as repr writes it.

    Args:
        keep: characters that stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)
