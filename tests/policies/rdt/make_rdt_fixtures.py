#!/usr/bin/env python3
"""Writes the fixtures of RDT, SigLIP and T5 with the reference packages.

    make_rdt_fixtures.py REFERENCE OUT

REFERENCE is a checkout of github.com/thu-ml/RoboticsDiffusionTransformer (deb71d82278780d83253a28d9b904085559be400 here);
OUT is tests/models/fixtures/diffusion. Needs torch and, in a virtual environment of its own, timm==1.0.3, diffusers==0.27.2
and transformers==4.46.3. float64, weights and inputs by the formula of ../diffusion_policy/reference.py.
"""
import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "diffusion"))
import reference  # noqa: E402

SMALL = dict(hidden_size=32, depth=3, num_heads=4, horizon=4, img_history_size=2, num_cameras=2, patches=3, lang_token_dim=12,
             img_token_dim=10, max_lang_cond_len=6)
SIZES = {"1b": dict(hidden_size=2048, depth=28, num_heads=32), "170m": dict(hidden_size=1024, depth=14, num_heads=32)}
SCHEDULER = dict(type="ddpm", num_train_timesteps=1000, num_inference_timesteps=5, beta_schedule="squaredcos_cap_v2",
                 prediction_type="sample", clip_sample=False)


def runner(sizes, dtype):
    from models.rdt_runner import RDTRunner
    s = dict(SMALL, horizon=64, num_cameras=3, patches=729, lang_token_dim=4096, img_token_dim=1152, max_lang_cond_len=1024)
    s.update(sizes)
    config = dict(rdt={k: s[k] for k in ("hidden_size", "depth", "num_heads")}, lang_adaptor="mlp2x_gelu",
                  img_adaptor="mlp2x_gelu", state_adaptor="mlp3x_gelu", noise_scheduler=SCHEDULER)
    return RDTRunner(action_dim=128, pred_horizon=s["horizon"], config=config, lang_token_dim=s["lang_token_dim"],
                     img_token_dim=s["img_token_dim"], state_token_dim=128, max_lang_cond_len=s["max_lang_cond_len"],
                     img_cond_len=s["img_history_size"] * s["num_cameras"] * s["patches"],
                     img_pos_embed_config=[("image", (s["img_history_size"], s["num_cameras"], -s["patches"]))],
                     lang_pos_embed_config=[("lang", -s["max_lang_cond_len"])], dtype=dtype)


def rdt_facts():
    facts = {"small": SMALL, "parameters": {}, "names": {}}
    for name, sizes in SIZES.items():
        net = runner(sizes, torch.float32)
        facts["parameters"][name] = sum(p.numel() for p in net.parameters())
        shapes = {k: list(p.shape) for k, p in net.named_parameters()}
        # The blocks are alike: the first stands for all.
        facts["names"][name] = {k: v for k, v in shapes.items() if ".blocks." not in k or ".blocks.0." in k}
        del net
    net = runner(SMALL, torch.float64)
    facts["positions"] = {k: reference.output_facts(getattr(net.model, k))
                          for k in ("x_pos_embed", "lang_cond_pos_embed", "img_cond_pos_embed")}
    reference.fill(net)
    net = net.double().eval()
    batch, horizon, s = 3, SMALL["horizon"], SMALL
    tensor = lambda name, *shape: reference.tensor(name, *shape).double()
    language, images = tensor("language", batch, 5, s["lang_token_dim"]), tensor("images", batch, 12, s["img_token_dim"])
    state, actions = tensor("state", batch, 1, 128), tensor("actions", batch, horizon, 128)
    noise = tensor("noise", batch, horizon, 128)
    mask = (tensor("mask", batch, 1, 128) > 0).double()
    seen = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 1, 0]]).bool()
    frequency, timesteps = torch.tensor([25.0, 0.0, 10.0]), torch.tensor([0, 420, 999])
    randn, randint = torch.randn, torch.randint
    torch.randn = lambda *a, **k: noise.clone()
    torch.randint = lambda *a, **k: timesteps.clone()
    loss = net.compute_loss(language, seen, images, state, actions, mask, frequency)
    loss.backward()
    facts.update(timesteps=timesteps.tolist(), frequency=frequency.tolist(), seen=seen.int().tolist(), loss=loss.item(),
                 gradients=reference.gradient_facts(net.named_parameters()))
    with torch.no_grad():
        state_action = torch.cat([torch.cat([state, mask], 2), torch.cat([noise, mask.expand(-1, horizon, -1)], 2)], 1)
        adapted = net.adapt_conditions(language, images, state_action)
        facts["output"] = reference.output_facts(net.model(adapted[2], frequency, timesteps, adapted[0], adapted[1],
                                                           lang_mask=seen))
        facts["sample"] = reference.output_facts(net.predict_action(language, seen, images, state, mask, frequency))
    torch.randn, torch.randint = randn, randint
    print("rdt", facts["parameters"], facts["loss"])
    return facts


def siglip_facts():
    from transformers import SiglipVisionConfig, SiglipVisionModel
    case = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40, image_size=20, patch_size=6)
    net = SiglipVisionModel(SiglipVisionConfig(**case, attn_implementation="eager"))
    reference.fill(net)
    net = net.double().eval()
    pixels = reference.tensor("pixels", 2, 3, 20, 20).double()
    output = net(pixels).last_hidden_state
    target = reference.tensor("target", *output.shape).double()
    loss = torch.nn.functional.mse_loss(output, target)
    loss.backward()
    own = [(k, p) for k, p in net.named_parameters() if ".head." not in k]
    print("siglip", loss.item())
    return {"case": case, "output": reference.output_facts(output), "loss": loss.item(),
            "gradients": reference.gradient_facts(own)}


def t5_facts():
    from transformers import T5Config, T5EncoderModel
    case = dict(vocab_size=40, d_model=24, d_kv=6, d_ff=32, num_layers=2, num_heads=3)
    net = T5EncoderModel(T5Config(**case, feed_forward_proj="gated-gelu", dropout_rate=0.0))
    reference.fill(net)
    net = net.double().eval()
    length = 45
    ids = torch.arange(2 * length).reshape(2, length) * 7 % 40
    mask = torch.ones(2, length, dtype=torch.long)
    mask[1, 5:] = 0
    output = net(input_ids=ids, attention_mask=mask).last_hidden_state * mask.unsqueeze(-1)
    loss = torch.nn.functional.mse_loss(output, reference.tensor("target", *output.shape).double())
    loss.backward()
    names = [k for k, _ in net.named_parameters()]
    print("t5", loss.item(), len(names))
    return {"case": case, "length": length, "output": reference.output_facts(output), "loss": loss.item(),
            "gradients": reference.gradient_facts(net.named_parameters())}


def main():
    sys.path.insert(0, sys.argv[1])
    facts = {"rdt": rdt_facts(), "siglip": siglip_facts(), "t5": t5_facts()}
    Path(sys.argv[2], "rdt.json").write_text(json.dumps(facts, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
