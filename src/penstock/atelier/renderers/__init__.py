"""Draw, edit, enlarge and film on this machine: renderers that follow the words of a prompt, not models."""
