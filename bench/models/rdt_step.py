"""The Python peer of rdt_step: RDT in plain PyTorch (tests/policies/rdt/plain_rdt.py), or transformers' encoders, one round
per line of standard input.

    rdt_step.py CASE BATCH PRECISION THREADS [DEVICE]

CASE: 170m, 1b, small (RDT: loss, backward, torch.optim.AdamW as Accelerate runs it), siglip-base, siglip-so400m
(SiglipVisionModel's forward), t5-small, t5-base (T5EncoderModel's forward on 64 tokens). Weights and inputs are random. The
encoders need transformers (4.46.3 here; a virtual environment of its own does). Answers "ready PARAMETERS TORCH_VERSION", then for each line
with "SECONDS VALUE"; on the end of input it prints "peak KIBIBYTES", of a CUDA device those of its tensors.
"""
import os
import resource
import sys
import time
from pathlib import Path

import torch

RDT = {
    "170m": dict(width=1024, depth=14, heads=32),
    "1b": dict(width=2048, depth=28, heads=32),
    "small": dict(width=256, depth=6, heads=8, horizon=16, language_width=128, language_length=32, image_width=96, images=256),
}
SIGLIP = {"siglip-base": dict(image_size=224, patch_size=16, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072),
          "siglip-so400m": dict(image_size=384, patch_size=14, hidden_size=1152, num_hidden_layers=27, num_attention_heads=16, intermediate_size=4304)}
T5 = {"t5-small": dict(d_model=512, d_kv=64, d_ff=1024, num_layers=8, num_heads=6),
      "t5-base": dict(d_model=768, d_kv=64, d_ff=2048, num_layers=12, num_heads=12)}


def rdt_round(case, batch, bf16, device):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "policies" / "rdt"))
    import plain_rdt
    rdt = plain_rdt.Rdt(**RDT[case]).to(device)
    m = rdt.model
    optimizer = torch.optim.AdamW(rdt.parameters(), lr=1e-4)
    language = torch.randn(batch, 32, rdt.lang_adaptor[0].in_features)
    images = torch.randn(batch, m.img_cond_pos_embed.shape[1], rdt.img_adaptor[0].in_features)
    conditions = [c.to(device) for c in (language, torch.ones(batch, 32, dtype=torch.bool), images, torch.randn(batch, 128),
                                         torch.ones(batch, 128), torch.full((batch,), 25.0))]
    actions = torch.randn(batch, m.horizon, 128, device=device)

    def step():
        optimizer.zero_grad()
        with torch.autocast(torch.device(device).type, torch.bfloat16, enabled=bf16):
            loss = rdt.loss(actions, torch.randn_like(actions), torch.randint(0, 1000, (batch,), device=device), *conditions)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(rdt.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return rdt, step


def encoder_round(case, batch, bf16, device):
    import transformers
    if case in SIGLIP:
        net = transformers.SiglipVisionModel(transformers.SiglipVisionConfig(vision_use_head=False, **SIGLIP[case])).eval()
        inputs = dict(pixel_values=torch.rand(batch, 3, net.config.image_size, net.config.image_size) * 2 - 1)
    else:
        net = transformers.T5EncoderModel(transformers.T5Config(feed_forward_proj="gated-gelu", vocab_size=32128, **T5[case])).eval()
        inputs = dict(input_ids=torch.randint(0, 32128, (batch, 64)), attention_mask=torch.ones(batch, 64, dtype=torch.long))

    def forward():
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            return net(**inputs).last_hidden_state.float().mean().item()

    return net, forward


def main():
    case, batch, precision, threads = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    device = sys.argv[5] if len(sys.argv) > 5 else "cpu"
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    net, run = (rdt_round if case in RDT else encoder_round)(case, batch, precision == "bf16", device)
    print("ready", sum(p.numel() for p in net.parameters()), torch.__version__, file=answers, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        value = run()
        print(time.perf_counter() - start, value, file=answers, flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print("peak", peak if device == "cpu" else torch.cuda.max_memory_allocated() // 1024, file=answers, flush=True)


if __name__ == "__main__":
    main()
