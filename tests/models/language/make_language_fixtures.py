#!/usr/bin/env python3
"""Writes the fixtures of tokenizer and DistilBERT with the tokenizers and transformers packages.

    make_language_fixtures.py OUT        (OUT: tests/models/fixtures/diffusion)

vocab.txt: a small vocabulary. language.json: pieces and ids of texts in several scripts; a small DistilBertModel with weights by
the formula of reference.py, in float64: last hidden state, sums over tokens.
"""
import json
import sys
from pathlib import Path

import tokenizers
import torch
import transformers
from transformers import DistilBertConfig, DistilBertModel

sys.path.insert(0, str(Path(__file__).parents[2] / "policies" / "diffusion"))
import reference  # noqa: E402

WORDS = """the a to put pick place up in into on open close drawer pot marker cup red green table robot gripper move left right
and then from it block push turn cafe naive uber strasse don t s un ##able play ##ing ##ed ##er open ##s 1 2 3 ##0 10 ##th
привет мир ##ет του και 你 好 中 文 ᄒ ##ᅡ ##ᆫ ᄀ ##ᅳ ##ᆯ i istanbul ##istanbul fi ﬁ αθηνα σ ς ##σ ##ς""".split()
TEXTS = [
    "Put the marker in the pot.",
    "pick up the RED cup, then place it on the table!",
    "  open\tthe\n drawer  ",
    "Café naïve Über straße",
    "don't un-playable playing played player",
    "10th 3rd 1,000.5% $5 + 2 = 7 ~`^|<>",
    "你好, 中文x",
    "ПРИВЕТ мир",
    "한글 한",
    "Αθήνα ΤΟΥ και ΟΔΟΣ",
    "İstanbul ISTANBUL ıstanbul",
    "a\u200bb\u00adc\u0000d\ufffde \u00a0 \u3000f",
    "😀 the robot 🤖!",
    "x" * 100 + " " + "y" * 101,
    "",
    "…—“the”  ‘cup’ ¿red? «green»",
    "e\u0301 o\u0308\u0323 Å ﬁ ½ ² ①",
    "豈 \U0002F800 \u3400",
    "move   left" + " and right" * 20,
]


def main():
    out = Path(sys.argv[1])
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + letters + ["##" + c for c in letters] + list("!,.'-?%$+=<>~`^|")
    for word in WORDS:
        if word not in vocabulary:
            vocabulary.append(word)
    (out / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    tokenizer = tokenizers.BertWordPieceTokenizer(str(out / "vocab.txt"), lowercase=True)
    texts = [{"text": t, "pieces": tokenizer.encode(t, add_special_tokens=False).tokens, "ids": tokenizer.encode(t).ids}
             for t in TEXTS]
    config = DistilBertConfig(vocab_size=len(vocabulary), dim=24, n_layers=2, n_heads=3, hidden_dim=40,
                              max_position_embeddings=64)
    model = reference.fill(DistilBertModel(config)).double().eval()
    tokenizer.enable_padding()
    batch = tokenizer.encode_batch(TEXTS[:3])
    ids, mask = torch.tensor([e.ids for e in batch]), torch.tensor([e.attention_mask for e in batch])
    with torch.no_grad():
        states = model(input_ids=ids, attention_mask=mask).last_hidden_state
        alone = model(input_ids=torch.tensor([[i for i, m in zip(batch[1].ids, batch[1].attention_mask) if m]])).last_hidden_state
    result = {"tokenizers": tokenizers.__version__, "transformers": transformers.__version__, "texts": texts,
              "config": {k: getattr(config, k) for k in ("vocab_size", "dim", "n_layers", "n_heads", "hidden_dim",
                                                         "max_position_embeddings")},
              "names": [k for k, _ in model.named_parameters()], "ids": ids.tolist(), "mask": mask.tolist(),
              "states": reference.short(states.flatten().tolist()), "sum": reference.short(states.sum(1).flatten().tolist()),
              "sum_alone": reference.short(alone.sum(1).flatten().tolist()),
              "default_parameters": sum(p.numel() for p in DistilBertModel(DistilBertConfig()).parameters())}
    print(result["default_parameters"], [t["pieces"] for t in texts][:5])
    (out / "language.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
