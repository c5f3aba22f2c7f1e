import os
os.environ['TORCHINDUCTOR_CACHE_DIR'] = 'torchinductor_cache'
os.environ.pop('TORCHDYNAMO_REPRO_AFTER', None)
os.environ.pop('TORCHDYNAMO_REPRO_LEVEL', None)

import torch
from torch import tensor, device
import torch.fx as fx
from torch._dynamo.testing import rand_strided
from math import inf
import torch._inductor.inductor_prims



import torch._dynamo.config
import torch._inductor.config
import torch._functorch.config
import torch.fx.experimental._config

torch._inductor.config.deterministic = False
torch._functorch.config.functionalize_rng_ops = False
torch._functorch.config.fake_tensor_allow_unsafe_data_ptr_access = True
torch._functorch.config.unlift_effect_tokens = False
torch._functorch.config.selective_decompose = False



isolate_fails_code_str = None





if "__compile_source__" in globals():
    import inspect as __after_aot_inspect
    import linecache as __after_aot_linecache
    __after_aot_filename = __after_aot_inspect.currentframe().f_code.co_filename
    __after_aot_linecache.cache[__after_aot_filename] = (
        len(__compile_source__),
        None,
        __compile_source__.splitlines(True),
        __after_aot_filename,
    )
# torch version: 2.13.0+cpu
# torch cuda version: None
# torch git version: cf30153c4c131c8164ee7798e5022d810682e2cb


# torch.cuda.is_available()==False, no GPU info collected
torch._higher_order_ops.triton_kernel_wrap.kernel_side_table.reset_table()

from torch.nn import *
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()



    def forward(self, arg0_1, arg1_1, arg2_1, arg3_1, arg4_1):
        view = torch.ops.aten.view.default(arg2_1, [10, 8])
        permute = torch.ops.aten.permute.default(arg0_1, [1, 0]);  arg0_1 = None
        addmm = torch.ops.aten.addmm.default(arg1_1, view, permute);  arg1_1 = view = permute = None
        view_1 = torch.ops.aten.view.default(addmm, [2, 5, 24]);  addmm = None
        split = torch.ops.aten.split.Tensor(view_1, 8, -1);  view_1 = None
        getitem = split[0]
        getitem_1 = split[1]
        getitem_2 = split[2];  split = None
        div = torch.ops.aten.div.Tensor(getitem, 2.8284271247461903);  getitem = None
        permute_1 = torch.ops.aten.permute.default(getitem_1, [0, 2, 1]);  getitem_1 = None
        expand = torch.ops.aten.expand.default(div, [2, 5, 8]);  div = None
        expand_1 = torch.ops.aten.expand.default(permute_1, [2, 8, 5]);  permute_1 = None
        bmm = torch.ops.aten.bmm.default(expand, expand_1);  expand = expand_1 = None
        amax = torch.ops.aten.amax.default(bmm, [-1], True)
        sub = torch.ops.aten.sub.Tensor(bmm, amax);  bmm = amax = None
        exp = torch.ops.aten.exp.default(sub);  sub = None
        sum_1 = torch.ops.aten.sum.dim_IntList(exp, [-1], True)
        div_1 = torch.ops.aten.div.Tensor(exp, sum_1);  exp = sum_1 = None
        expand_2 = torch.ops.aten.expand.default(div_1, [2, 5, 5]);  div_1 = None
        expand_3 = torch.ops.aten.expand.default(getitem_2, [2, 5, 8]);  getitem_2 = None
        bmm_1 = torch.ops.aten.bmm.default(expand_2, expand_3);  expand_2 = expand_3 = None
        view_8 = torch.ops.aten.view.default(bmm_1, [10, 8]);  bmm_1 = None
        permute_2 = torch.ops.aten.permute.default(arg3_1, [1, 0]);  arg3_1 = None
        addmm_1 = torch.ops.aten.addmm.default(arg4_1, view_8, permute_2);  arg4_1 = view_8 = permute_2 = None
        view_9 = torch.ops.aten.view.default(addmm_1, [2, 5, 8]);  addmm_1 = None
        add = torch.ops.aten.add.Tensor(arg2_1, view_9);  arg2_1 = view_9 = None
        return (add,)

def load_args(reader):
    buf0 = reader.storage('e017ee570b704a1b7afc26c57a1c53de5bf161e4', 768)
    reader.tensor(buf0, (24, 8), requires_grad=True, is_leaf=True)  # arg0_1
    buf1 = reader.storage('dfaff39b5a27fcc12f34567529a65e46c07c2dce', 96)
    reader.tensor(buf1, (24,), requires_grad=True, is_leaf=True)  # arg1_1
    buf2 = reader.storage('b4d5483d9ace58ef0998534f909c35185b3b8217', 320)
    reader.tensor(buf2, (2, 5, 8), is_leaf=True)  # arg2_1
    buf3 = reader.storage('05f14409125c6dddb129b083bcf050d5572c18d9', 256)
    reader.tensor(buf3, (8, 8), requires_grad=True, is_leaf=True)  # arg3_1
    buf4 = reader.storage('d15de355b65e908f15bf8b4fa189945899c095d5', 32)
    reader.tensor(buf4, (8,), requires_grad=True, is_leaf=True)  # arg4_1
load_args._version = 0
mod = Repro()
if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=False, command='minify', save_dir='checkpoints', tracing_mode='real', check_str=None)
        # To run it separately, do
        # mod, args = run_repro(mod, load_args, accuracy=False, command='get_args', save_dir='checkpoints', tracing_mode='real', check_str=None)
        # mod(*args)
