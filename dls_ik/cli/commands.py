"""Every command by its section, with the line that the help has for it.

A command is the function of its name in the module of its name, imported when it is used.
"""

SECTIONS: dict[str, dict[str, str]] = {
    "Robots": {
        "info": "Joints, limits and reach of a robot.",
        "fk": "Where the tip is at joint values.",
        "solve": "Joint values for a pose, by any methods.",
        "path": "A file of poses to a joint trajectory.",
        "reachability": "Map what an arm reaches.",
    },
    "Methods": {
        "reproduce": "Run a published table or figure again.",
        "bench": "Compare methods on random poses.",
    },
    "View": {
        "view": "Show an arm in the browser, and drag it.",
    },
    "Node": {
        "call": "Ask a running node once.",
        "stream": "Send targets to a running node.",
    },
    "Setup": {
        "doctor": "What is installed, works, or needs mending.",
    },
}

COMMANDS: dict[str, str] = {name: line for part in SECTIONS.values() for name, line in part.items()}
