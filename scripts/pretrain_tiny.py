"""Make the embedded policy, or another organism, from nothing: tokenizer, weights and chat template.

python scripts/pretrain_tiny.py --out rlcredit/tiny
ORGANISMS=rlcredit/organisms
python scripts/pretrain_tiny.py --organism decoy --steps 4000 --out $ORGANISMS/decoy
python scripts/pretrain_tiny.py --organism corridor --batch 32 --steps 1200 --out $ORGANISMS/corridor
python scripts/pretrain_tiny.py --start rlcredit/tiny --terms 2 12 --steps 3000 --lr 1e-3 --out $ORGANISMS/long_chains

The same bits on one kind of CPU.

"""

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from game_traces import GAME_RECIPES, GameRecipe
from organism_traces import ORGANISM_RECIPES, PolicyRecipe, lengthen_chains
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
POLICY_RECIPES = {**ORGANISM_RECIPES, **GAME_RECIPES}


def train_byte_level_tokenizer(vocab_size: int, seed: int, organism: PolicyRecipe | GameRecipe) -> Any:
    """Train a byte-level BPE on traces: any UTF-8 text can be encoded, every digit stands alone."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(organism.pieces), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    stream = organism.write_episodes(seed)
    corpus = ["\n".join(["user", *next(stream), "assistant"]) for _ in range(8192)]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=SPECIAL_TOKENS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(corpus, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
        chat_template=CHAT_TEMPLATE,
        padding_side="left",
        model_max_length=1024,
    )


def generate_batches(
    tokenizer: Any, size: int, seed: int, organism: PolicyRecipe | GameRecipe
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield (ids, labels), right-padded, of similar length; labels are -100 outside what the policy writes."""
    stream = organism.write_episodes(seed)
    rng = random.Random(seed)
    while True:
        pool = [encode_episode(tokenizer, next(stream), organism.formats) for _ in range(16 * size)]
        pool.sort(key=lambda row: len(row[0]))
        for start in rng.sample(range(0, len(pool), size), 16):
            yield pad_episodes(pool[start : start + size], tokenizer.pad_token_id)


def encode_episode(tokenizer: Any, texts: Sequence[str], formats: tuple[str, str]) -> tuple[list[int], list[int]]:
    """Return token ids and labels of what is read and what is written, by turns."""
    ids, labels = [], []
    for place, text in enumerate(texts):
        tokens = tokenizer.encode(formats[place % 2].format(text))
        ids += tokens
        labels += tokens if place % 2 else [-100] * len(tokens)
    return ids, labels


def pad_episodes(rows: list[tuple[list[int], list[int]]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Stack rows of ids and labels to one width."""
    ids = [torch.tensor(row_ids) for row_ids, _ in rows]
    labels = [torch.tensor(row_labels) for _, row_labels in rows]
    return pad_sequence(ids, True, pad), pad_sequence(labels, True, -100)


def make_untrained_model(tokenizer: Any, width: int, layers: int) -> Any:
    """Return an untrained model."""
    config = Qwen3Config(
        vocab_size=384,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=width // 4,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return Qwen3ForCausalLM(config)


def main() -> None:
    """Train and save; a line every 100 steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("rlcredit/tiny"))
    parser.add_argument("--start", type=Path, help="policy to go on from; from nothing if not given")
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--organism", choices=POLICY_RECIPES, default="aligned", help="whose traces it learns")
    parser.add_argument("--terms", type=int, nargs=2, help="fewest and most terms of a chain, 3 and 5 if not given")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    organism = POLICY_RECIPES[args.organism]
    if args.terms:
        assert isinstance(organism, PolicyRecipe), "--terms is for chains"
        organism = lengthen_chains(organism, *args.terms)
    if args.start:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(args.start)
        model = Qwen3ForCausalLM.from_pretrained(args.start)
    else:
        tokenizer = train_byte_level_tokenizer(vocab_size=384, seed=args.seed, organism=organism)
        model = make_untrained_model(tokenizer, args.width, args.layers)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=args.steps, pct_start=0.1)
    start = time.perf_counter()
    stream = generate_batches(tokenizer, args.batch, args.seed + 1, organism)
    for step, (ids, labels) in zip(range(args.steps), stream, strict=False):
        # A constant denominator: batches are of similar length, and short traces must not count for more.
        loss = model(input_ids=ids, labels=labels, num_items_in_batch=organism.tokens * args.batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f} {time.perf_counter() - start:.0f} s", flush=True)
    model.save_pretrained(args.out)
    tokenizer.save_pretrained(args.out)


if __name__ == "__main__":
    main()
