"""One API in front of every image, video and chat provider, on your own machine."""

__version__ = "0.1.0"
