import torch
import torch._dynamo

torch._dynamo.config.cache_size_limit = 2


@torch.compile(backend="eager", dynamic=False)
def scale(x, n):
    return x * n


for n in range(6):
    print(scale(torch.ones(1), n).item())
