"""Renderers of images, videos and chat that follow the words of a prompt; they are programs, not models."""
