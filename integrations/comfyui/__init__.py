"""Nodes for ComfyUI: any image, video and speech model of a Penstock gateway."""

from .nodes import PenstockImage, PenstockSpeech, PenstockVideo

NODE_CLASS_MAPPINGS = {
    "PenstockImage": PenstockImage,
    "PenstockSpeech": PenstockSpeech,
    "PenstockVideo": PenstockVideo,
}
NODE_DISPLAY_NAME_MAPPINGS = {
    "PenstockImage": "Penstock Image",
    "PenstockSpeech": "Penstock Speech",
    "PenstockVideo": "Penstock Video",
}
__all__ = ["NODE_CLASS_MAPPINGS", "NODE_DISPLAY_NAME_MAPPINGS"]
