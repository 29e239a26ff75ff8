"""Following targets: messages in, cycles at a rate, commands out."""
