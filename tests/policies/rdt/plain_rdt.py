"""RDT in plain PyTorch, from the published formulas (arXiv 2410.07864) and the names of the published weights: no timm, no
diffusers. For the tests of training and for the benchmark."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class DeviationNorm(nn.Module):
    """timm 1.0.3's RmsNorm, with which the weights were trained: it divides by the deviation."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(torch.var(x, dim=-1, keepdim=True) + 1e-6) * self.weight


class Embedder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, t):
        rates = torch.exp(torch.arange(128, dtype=torch.float32, device=t.device) * (-math.log(10000.0) / 128))
        angles = t.float()[:, None] * rates
        return self.mlp(torch.cat([angles.cos(), angles.sin()], -1).to(self.mlp[0].weight.dtype))


class Mlp(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, width), nn.Linear(width, out)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.q_norm, self.k_norm = DeviationNorm(width // heads), DeviationNorm(width // heads)

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        out = F.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v)
        return self.proj(out.transpose(1, 2).reshape(b, n, w))


class CrossAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.kv, self.proj = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.q_norm, self.k_norm = DeviationNorm(width // heads), DeviationNorm(width // heads)

    def forward(self, x, c, mask):
        b, n, w = x.shape
        q = self.q(x).view(b, n, self.heads, -1).transpose(1, 2)
        k, v = self.kv(c).view(b, c.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        if mask is not None:
            mask = mask.view(b, 1, 1, -1).expand(-1, -1, n, -1)
        out = F.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v, attn_mask=mask)
        return self.proj(out.transpose(1, 2).reshape(b, n, w))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (DeviationNorm(width) for _ in range(3))
        self.attn, self.cross_attn = SelfAttention(width, heads), CrossAttention(width, heads)
        self.ffn = Mlp(width, width)

    def forward(self, x, c, mask):
        x = self.attn(self.norm1(x)) + x
        x = self.cross_attn(self.norm2(x), c, mask) + x
        return self.ffn(self.norm3(x)) + x


class Final(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.norm_final, self.ffn_final = DeviationNorm(width), Mlp(width, out)

    def forward(self, x):
        return self.ffn_final(self.norm_final(x))


class Transformer(nn.Module):
    def __init__(self, width, depth, heads, horizon, language, images, out):
        super().__init__()
        self.horizon = horizon
        self.x_pos_embed = nn.Parameter(torch.zeros(1, horizon + 3, width))
        self.lang_cond_pos_embed = nn.Parameter(torch.zeros(1, language, width))
        self.img_cond_pos_embed = nn.Parameter(torch.zeros(1, images, width))
        self.t_embedder, self.freq_embedder = Embedder(width), Embedder(width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.final_layer = Final(width, out)

    def forward(self, tokens, frequency, timesteps, language, mask, images):
        x = torch.cat([self.t_embedder(timesteps)[:, None], self.freq_embedder(frequency)[:, None], tokens], 1) + self.x_pos_embed
        language = language + self.lang_cond_pos_embed[:, :language.shape[1]]
        images = images + self.img_cond_pos_embed
        for i, block in enumerate(self.blocks):
            x = block(x, language if i % 2 == 0 else images, mask if i % 2 == 0 else None)
        return self.final_layer(x)[:, -self.horizon:]


def adaptor(layers, into, width):
    parts = [nn.Linear(into, width)]
    for _ in range(layers - 1):
        parts += [nn.GELU(approximate="tanh"), nn.Linear(width, width)]
    return nn.Sequential(*parts)


class Rdt(nn.Module):
    def __init__(self, width=2048, depth=28, heads=32, horizon=64, language_width=4096, language_length=1024, image_width=1152,
                 images=4374, slots=128):
        super().__init__()
        self.model = Transformer(width, depth, heads, horizon, language_length, images, slots)
        self.lang_adaptor = adaptor(2, language_width, width)
        self.img_adaptor = adaptor(2, image_width, width)
        self.state_adaptor = adaptor(3, 2 * slots, width)
        self.register_buffer("kept", squared_cosine(1000), persistent=False)

    def forward(self, noisy, timesteps, language, mask, images, state, state_mask, frequency):
        rows = state_mask[:, None].expand(-1, noisy.shape[1], -1)
        state = self.state_adaptor(torch.cat([state, state_mask], -1)[:, None])
        actions = self.state_adaptor(torch.cat([noisy, rows], -1))
        return self.model(torch.cat([state, actions], 1), frequency, timesteps, self.lang_adaptor(language), mask,
                          self.img_adaptor(images))

    def loss(self, actions, noise, timesteps, *conditions):
        kept = self.kept[timesteps].view(-1, 1, 1).to(actions.dtype)
        noisy = kept.sqrt() * actions + (1 - kept).sqrt() * noise
        return F.mse_loss(self(noisy, timesteps, *conditions), actions)


def squared_cosine(steps):
    """What is left of the signal after each step (Nichol and Dhariwal 2021)."""
    level = lambda t: math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
    betas = [min(1 - level((i + 1) / steps) / level(i / steps), 0.999) for i in range(steps)]
    return torch.cumprod(1 - torch.tensor(betas, dtype=torch.float32), 0)
