import torch
from torch._dynamo.utils import CompileProfiler

steps = iter(range(100))

def my_model():
    return torch.ones(3) * next(steps)

with CompileProfiler() as prof:
    profiler_model = torch.compile(my_model, backend=prof)
    profiler_model()
    print(prof.report())
