"""Prints index lists of torch.utils.data.DistributedSampler for the settings in CASES, one JSON object a line."""
import json

import torch
from torch.utils.data import DistributedSampler

# size, world_size, shuffle, drop_last, seed, epoch
CASES = [(n, w, s, d, seed, epoch)
         for n in (1, 2, 7, 100, 1001) for w in (1, 2, 3, 8)
         for s in (True, False) for d in (True, False)
         for seed, epoch in ((0, 0), (3, 5), (4294967290, 9))]

for n, w, shuffle, drop_last, seed, epoch in CASES:
    ranks = []
    for rank in range(w):
        sampler = DistributedSampler(range(n), num_replicas=w, rank=rank, shuffle=shuffle, seed=seed,
                                     drop_last=drop_last)
        sampler.set_epoch(epoch)
        ranks.append([len(sampler), list(sampler)])
    print(json.dumps(dict(n=n, world_size=w, shuffle=shuffle, drop_last=drop_last, seed=seed, epoch=epoch, ranks=ranks)))
print(json.dumps(dict(randperm=torch.randperm(50000, generator=torch.Generator().manual_seed(12345)).tolist())))
