#!/usr/bin/env python3
"""Writes a small T5 as the hub keeps one, and what transformers makes of texts with it: needs transformers and sentencepiece.

    make_t5_fixtures.py OUT        (OUT: tests/models/fixtures/t5)

spiece.model: a vocabulary trained here, with a few rules of normalisation in the place of T5's, whose table is large. config.json and
model.safetensors: a T5EncoderModel, weights drawn at random. expected.json: pieces and ids of texts by T5Tokenizer;
hidden states of some of them.
"""
import json
import sys
import tempfile
from pathlib import Path

import sentencepiece
import torch
import transformers
from transformers import T5Config, T5EncoderModel, T5Tokenizer

SENTENCES = """Pick up the black marker on the right and put it into the packaging box on the left.
Put the bowl in the top drawer of the cabinet and close it.
Open the top drawer and put the bowl inside.
close the bottom drawer of the cabinet
turn on the stove and put the moka pot on it
put both the alphabet soup and the tomato sauce in the basket
pick up the book and place it in the back compartment of the caddy
Push the T-shaped block onto its mark, then move the arm away from the table!
stack the red cube on the green cube; leave the blue one where it is
put the yellow and white mug in the microwave and close it
""".splitlines()
TEXTS = ["Pick up the black marker on the right.", "open the drawer", "", "   two  spaces\tand a tab\nand a line ", "a", ".",
         "Caf\u00e9 \u4f60\u597d \U0001f916 robot", "\uff21\uff22 \ufb01ne", "PUT THE BOWL IN THE DRAWER", "3.14 x 10^-2 m/s",
         "the " * 12 + "end", "\u2581marked", "pick\u00a0up"]
LENGTH = 16  # of the test of truncation


def short(values):
    return [float(f"{v:.9g}") for v in values]


def main():
    out = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "rules.tsv"
        rules.write_text("FF21\t41\nFF22\t42\nFB01\t66 69\nA\t20\n9\t20\nA0\t20\n")
        text = Path(folder) / "text.txt"
        text.write_text("\n".join(SENTENCES * 4))
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=f"{folder}/spiece", vocab_size=88, model_type="unigram", pad_id=0, eos_id=1, unk_id=2,
            bos_id=-1, normalization_rule_tsv=str(rules), character_coverage=1.0, minloglevel=2)
        (out / "spiece.model").write_bytes(Path(f"{folder}/spiece.model").read_bytes())
    slow = T5Tokenizer(str(out / "spiece.model"), legacy=True)
    texts = [{"text": t, "pieces": slow.tokenize(t), "ids": slow(t).input_ids,
              "cut": slow(t, truncation=True, max_length=LENGTH).input_ids,
              "padded": slow(t, truncation=True, max_length=LENGTH, padding="max_length").input_ids} for t in TEXTS]
    torch.manual_seed(3)
    config = T5Config(vocab_size=96, d_model=24, d_kv=6, d_ff=40, num_layers=2, num_heads=3, feed_forward_proj="gated-gelu",
                      dropout_rate=0.0)
    model = T5EncoderModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.3)
    model.save_pretrained(out)
    states = []
    for text in TEXTS[:4]:
        tokens = slow(text, return_tensors="pt")
        with torch.no_grad():
            states.append(short(model.double()(**tokens).last_hidden_state.flatten().tolist()))
    batch = slow(TEXTS[:3], return_tensors="pt", padding="longest")
    with torch.no_grad():
        padded = model(**batch).last_hidden_state
    for i in range(3):
        kept = padded[i][batch.attention_mask[i].bool()].flatten()
        assert torch.allclose(kept, torch.tensor(states[i], dtype=torch.float64), atol=1e-7), "padding changes nothing"
    facts = {"transformers": transformers.__version__, "sentencepiece": sentencepiece.__version__, "length": LENGTH,
             "size": slow.sp_model.get_piece_size(), "texts": texts, "states": states}
    (out / "expected.json").write_text(json.dumps(facts, separators=(",", ":")) + "\n")
    print([t["pieces"] for t in texts])


if __name__ == "__main__":
    main()
