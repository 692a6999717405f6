"""The Python peer of act_step: ACT in plain PyTorch, one training step per line of standard input.

    act_step.py BATCH SIDE CAMERAS THREADS

The network of lerobot 0.6.1's ACTPolicy at its default sizes (docs/guide/act.md: the tests compare it with lerobot itself), out of
torch.nn's modules as lerobot takes them: a ResNet-18 whose normalisation is frozen, torch.nn.MultiheadAttention, an encoder of
actions, AdamW, gradients clipped at 10. State and actions of 14 numbers, chunks of 100, CAMERAS pictures of SIDE pixels.
Answers "ready PARAMETERS TORCH_VERSION", then for each line with "SECONDS LOSS"; on the end of input it prints "peak KIBIBYTES".
"""
import math
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, FEED, CHUNK, LATENT, ACTIONS, DROPOUT = 512, 8, 3200, 100, 32, 14, 0.1


class FrozenNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, torch.full((channels,), value))

    def forward(self, x):
        scale = self.weight * (self.running_var + 1e-5).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.view(1, -1, 1, 1) + shift.view(1, -1, 1, 1)


class Block(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = FrozenNorm(channels), FrozenNorm(channels)
        self.down = None
        if stride != 1 or channels_in != channels:
            self.down = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), FrozenNorm(channels))

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + (x if self.down is None else self.down(x)))


def resnet18():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), FrozenNorm(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    for channels_in, channels, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
        layers += [Block(channels_in, channels, stride), Block(channels, channels, 1)]
    return nn.Sequential(*layers)


class Layer(nn.Module):
    """Of an encoder, or with `crosses` of a decoder: positions are added to queries and keys, norms stand behind each part."""

    def __init__(self, crosses):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, dropout=DROPOUT)
        self.cross = nn.MultiheadAttention(WIDTH, HEADS, dropout=DROPOUT) if crosses else None
        self.linear1, self.linear2 = nn.Linear(WIDTH, FEED), nn.Linear(FEED, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3 if crosses else 2))
        self.dropouts = nn.ModuleList(nn.Dropout(DROPOUT) for _ in range(4 if crosses else 3))

    def forward(self, x, positions, mask=None, memory=None, memory_positions=None):
        q = x + positions
        x = self.norms[0](x + self.dropouts[0](self.attention(q, q, value=x, key_padding_mask=mask)[0]))
        if self.cross is not None:
            found = self.cross(x + positions, memory + memory_positions, value=memory)[0]
            x = self.norms[1](x + self.dropouts[1](found))
        y = self.linear2(self.dropouts[-1](F.relu(self.linear1(x))))
        return self.norms[-1](x + self.dropouts[-2](y))


def sinusoid(length, width):
    rates = 10000 ** (-2 * (torch.arange(width) // 2) / width)
    angles = torch.arange(length)[:, None] * rates
    return torch.where(torch.arange(width) % 2 == 0, angles.sin(), angles.cos())[:, None]


def plane_positions(height, width):
    rates = 10000 ** (2 * (torch.arange(WIDTH // 2) // 2) / (WIDTH // 2))

    def one(n):
        angles = (torch.arange(1, n + 1) / (n + 1e-6) * 2 * math.pi)[:, None] / rates
        return torch.where(torch.arange(WIDTH // 2) % 2 == 0, angles.sin(), angles.cos())

    y, x = one(height)[:, None].expand(-1, width, -1), one(width)[None].expand(height, -1, -1)
    return torch.cat([y, x], -1).reshape(height * width, 1, WIDTH)


class Act(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = resnet18()
        self.vae = nn.ModuleList(Layer(False) for _ in range(4))
        self.encoder = nn.ModuleList(Layer(False) for _ in range(4))
        self.decoder, self.last_norm = Layer(True), nn.LayerNorm(WIDTH)
        self.cls, self.queries, self.tokens = nn.Embedding(1, WIDTH), nn.Embedding(CHUNK, WIDTH), nn.Embedding(2, WIDTH)
        self.vae_state, self.vae_action = nn.Linear(14, WIDTH), nn.Linear(ACTIONS, WIDTH)
        self.vae_out, self.latent = nn.Linear(WIDTH, 2 * LATENT), nn.Linear(LATENT, WIDTH)
        self.state, self.picture = nn.Linear(14, WIDTH), nn.Conv2d(512, WIDTH, 1)
        self.head = nn.Linear(WIDTH, ACTIONS)
        self.register_buffer("vae_positions", sinusoid(CHUNK + 2, WIDTH))

    def forward(self, state, pictures, actions, padded):
        batch = len(state)
        seen = [self.cls.weight.expand(batch, -1)[None], self.vae_state(state)[None], self.vae_action(actions).transpose(0, 1)]
        x = torch.cat(seen)
        mask = torch.cat([torch.zeros(batch, 2, dtype=torch.bool), padded], 1)
        for layer in self.vae:
            x = layer(x, self.vae_positions, mask)
        mean, log_variance = self.vae_out(x[0]).chunk(2, 1)
        latent = mean + (log_variance / 2).exp() * torch.randn_like(mean)
        tokens, positions = [self.latent(latent)[None], self.state(state)[None]], [self.tokens.weight[:, None]]
        for picture in pictures:
            features = self.backbone(picture)
            positions.append(plane_positions(*features.shape[2:]))
            tokens.append(self.picture(features).flatten(2).permute(2, 0, 1))
        memory, positions = torch.cat(tokens), torch.cat(positions)
        for layer in self.encoder:
            memory = layer(memory, positions)
        x = self.decoder(torch.zeros(CHUNK, batch, WIDTH), self.queries.weight[:, None], None, memory, positions)
        predicted = self.head(self.last_norm(x)).transpose(0, 1)
        kept = (~padded)[..., None].expand_as(actions)
        l1 = (F.l1_loss(predicted, actions, reduction="none") * kept).sum() / kept.sum()
        kl = (-0.5 * (1 + log_variance - mean ** 2 - log_variance.exp())).sum(-1).mean()
        return l1 + 10 * kl


def main():
    batch, side, cameras, threads = map(int, sys.argv[1:5])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    policy = Act().train()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-5, weight_decay=1e-4)
    state, actions = torch.randn(batch, 14), torch.randn(batch, CHUNK, ACTIONS)
    bytes_ = [torch.randint(256, (batch, 3, side, side), dtype=torch.uint8) for _ in range(cameras)]
    padded = torch.zeros(batch, CHUNK, dtype=torch.bool)
    padded[0, CHUNK // 2:] = True
    means, deviations = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1), torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def step():
        optimizer.zero_grad()
        loss = policy(state, [(b / 255 - means) / deviations for b in bytes_], actions, padded)
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 10.0)
        optimizer.step()
        return loss.item()

    print("ready", sum(p.numel() for p in policy.parameters()), torch.__version__, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        value = step()
        print(time.perf_counter() - start, value, flush=True)
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)


if __name__ == "__main__":
    main()
