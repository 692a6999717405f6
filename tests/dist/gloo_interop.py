"""A Python rank that makes the collectives of dist_worker's scenario "python" together with a C++ rank."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()

t = torch.arange(10, dtype=torch.float32) * (rank + 1)
dist.all_reduce(t)
assert torch.equal(t, torch.arange(10, dtype=torch.float32) * 3), t
for root in (0, 1):
    t = torch.full((3,), rank)
    dist.broadcast(t, root)
    assert torch.equal(t, torch.full((3,), root)), t
big = torch.full((1 << 20,), rank + 1.0)
dist.all_reduce(big)
assert torch.equal(big, torch.full((1 << 20,), 3.0)), big
dist.barrier()  # group.barrier() of the C++ side
dist.barrier()  # group.close()
dist.destroy_process_group()
print("done")
