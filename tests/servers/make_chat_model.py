"""Run in vLLM's environment: make a tiny chat model of random weights, with a tokenizer and a template for chats.

`python make_chat_model.py FOLDER`
"""

import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # type: ignore[import-not-found]
from transformers import (  # type: ignore[import-not-found]
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

folder = sys.argv[1]
END = "<|end|>"
TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}" + END + "\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
# Every byte is a token, so any text can be written with them.
alphabet = pre_tokenizers.ByteLevel.alphabet()
trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, special_tokens=[END])
tokenizer.train_from_iterator(["a lighthouse, a fox and the sea"], trainer)
wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=END, chat_template=TEMPLATE)
wrapped.save_pretrained(folder)

config = LlamaConfig(
    vocab_size=len(wrapped),
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    max_position_embeddings=512,
    bos_token_id=None,
    eos_token_id=wrapped.eos_token_id,
)
LlamaForCausalLM(config).save_pretrained(folder)
