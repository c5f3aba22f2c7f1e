import os
os.environ['TORCHINDUCTOR_CACHE_DIR'] = 'torchinductor_cache'
os.environ.pop('TORCHDYNAMO_REPRO_AFTER', None)
os.environ.pop('TORCHDYNAMO_REPRO_LEVEL', None)

from math import inf
import torch
from torch import tensor, device
import torch.fx as fx
import torch._dynamo
from torch._dynamo.testing import rand_strided
from torch._dynamo.debug_utils import run_fwd_maybe_bwd

import torch._dynamo.config
import torch._inductor.config
import torch._functorch.config
import torch.fx.experimental._config

torch._inductor.config.deterministic = False
torch._functorch.config.fake_tensor_allow_unsafe_data_ptr_access = True






from torch.nn import *
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()



    def forward(self, L_self_modules_letters_parameters_weight_ : torch.nn.parameter.Parameter, L_text_ : torch.Tensor, L_self_parameters_positions_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_0_modules_norm1_parameters_weight_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_0_modules_norm1_parameters_bias_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_0_modules_qkv_parameters_weight_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_0_modules_qkv_parameters_bias_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_0_modules_out_parameters_weight_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_0_modules_out_parameters_bias_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_0_modules_norm2_parameters_weight_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_0_modules_norm2_parameters_bias_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_0_modules_up_parameters_weight_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_0_modules_up_parameters_bias_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_0_modules_down_parameters_weight_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_0_modules_down_parameters_bias_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_1_modules_norm1_parameters_weight_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_1_modules_norm1_parameters_bias_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_1_modules_qkv_parameters_weight_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_1_modules_qkv_parameters_bias_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_1_modules_out_parameters_weight_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_1_modules_out_parameters_bias_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_1_modules_norm2_parameters_weight_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_1_modules_norm2_parameters_bias_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_1_modules_up_parameters_weight_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_1_modules_up_parameters_bias_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_1_modules_down_parameters_weight_ : torch.nn.parameter.Parameter, L_self_modules_blocks_modules_1_modules_down_parameters_bias_ : torch.nn.parameter.Parameter, L_self_modules_norm_parameters_weight_ : torch.nn.parameter.Parameter, L_self_modules_norm_parameters_bias_ : torch.nn.parameter.Parameter, L_self_modules_head_parameters_weight_ : torch.nn.parameter.Parameter, L_self_modules_head_parameters_bias_ : torch.nn.parameter.Parameter, L_expected_ : torch.Tensor):
        l_self_modules_letters_parameters_weight_ = L_self_modules_letters_parameters_weight_
        l_text_ = L_text_
        l_self_parameters_positions_ = L_self_parameters_positions_
        l_self_modules_blocks_modules_0_modules_norm1_parameters_weight_ = L_self_modules_blocks_modules_0_modules_norm1_parameters_weight_
        l_self_modules_blocks_modules_0_modules_norm1_parameters_bias_ = L_self_modules_blocks_modules_0_modules_norm1_parameters_bias_
        l_self_modules_blocks_modules_0_modules_qkv_parameters_weight_ = L_self_modules_blocks_modules_0_modules_qkv_parameters_weight_
        l_self_modules_blocks_modules_0_modules_qkv_parameters_bias_ = L_self_modules_blocks_modules_0_modules_qkv_parameters_bias_
        l_self_modules_blocks_modules_0_modules_out_parameters_weight_ = L_self_modules_blocks_modules_0_modules_out_parameters_weight_
        l_self_modules_blocks_modules_0_modules_out_parameters_bias_ = L_self_modules_blocks_modules_0_modules_out_parameters_bias_
        l_self_modules_blocks_modules_0_modules_norm2_parameters_weight_ = L_self_modules_blocks_modules_0_modules_norm2_parameters_weight_
        l_self_modules_blocks_modules_0_modules_norm2_parameters_bias_ = L_self_modules_blocks_modules_0_modules_norm2_parameters_bias_
        l_self_modules_blocks_modules_0_modules_up_parameters_weight_ = L_self_modules_blocks_modules_0_modules_up_parameters_weight_
        l_self_modules_blocks_modules_0_modules_up_parameters_bias_ = L_self_modules_blocks_modules_0_modules_up_parameters_bias_
        l_self_modules_blocks_modules_0_modules_down_parameters_weight_ = L_self_modules_blocks_modules_0_modules_down_parameters_weight_
        l_self_modules_blocks_modules_0_modules_down_parameters_bias_ = L_self_modules_blocks_modules_0_modules_down_parameters_bias_
        l_self_modules_blocks_modules_1_modules_norm1_parameters_weight_ = L_self_modules_blocks_modules_1_modules_norm1_parameters_weight_
        l_self_modules_blocks_modules_1_modules_norm1_parameters_bias_ = L_self_modules_blocks_modules_1_modules_norm1_parameters_bias_
        l_self_modules_blocks_modules_1_modules_qkv_parameters_weight_ = L_self_modules_blocks_modules_1_modules_qkv_parameters_weight_
        l_self_modules_blocks_modules_1_modules_qkv_parameters_bias_ = L_self_modules_blocks_modules_1_modules_qkv_parameters_bias_
        l_self_modules_blocks_modules_1_modules_out_parameters_weight_ = L_self_modules_blocks_modules_1_modules_out_parameters_weight_
        l_self_modules_blocks_modules_1_modules_out_parameters_bias_ = L_self_modules_blocks_modules_1_modules_out_parameters_bias_
        l_self_modules_blocks_modules_1_modules_norm2_parameters_weight_ = L_self_modules_blocks_modules_1_modules_norm2_parameters_weight_
        l_self_modules_blocks_modules_1_modules_norm2_parameters_bias_ = L_self_modules_blocks_modules_1_modules_norm2_parameters_bias_
        l_self_modules_blocks_modules_1_modules_up_parameters_weight_ = L_self_modules_blocks_modules_1_modules_up_parameters_weight_
        l_self_modules_blocks_modules_1_modules_up_parameters_bias_ = L_self_modules_blocks_modules_1_modules_up_parameters_bias_
        l_self_modules_blocks_modules_1_modules_down_parameters_weight_ = L_self_modules_blocks_modules_1_modules_down_parameters_weight_
        l_self_modules_blocks_modules_1_modules_down_parameters_bias_ = L_self_modules_blocks_modules_1_modules_down_parameters_bias_
        l_self_modules_norm_parameters_weight_ = L_self_modules_norm_parameters_weight_
        l_self_modules_norm_parameters_bias_ = L_self_modules_norm_parameters_bias_
        l_self_modules_head_parameters_weight_ = L_self_modules_head_parameters_weight_
        l_self_modules_head_parameters_bias_ = L_self_modules_head_parameters_bias_
        l_expected_ = L_expected_
        embedding = torch.nn.functional.embedding(l_text_, l_self_modules_letters_parameters_weight_, None, None, 2.0, False, False);  l_text_ = l_self_modules_letters_parameters_weight_ = None
        x = embedding + l_self_parameters_positions_;  embedding = l_self_parameters_positions_ = None
        layer_norm = torch.nn.functional.layer_norm(x, (32,), l_self_modules_blocks_modules_0_modules_norm1_parameters_weight_, l_self_modules_blocks_modules_0_modules_norm1_parameters_bias_, 1e-05);  l_self_modules_blocks_modules_0_modules_norm1_parameters_weight_ = l_self_modules_blocks_modules_0_modules_norm1_parameters_bias_ = None
        linear = torch._C._nn.linear(layer_norm, l_self_modules_blocks_modules_0_modules_qkv_parameters_weight_, l_self_modules_blocks_modules_0_modules_qkv_parameters_bias_);  layer_norm = l_self_modules_blocks_modules_0_modules_qkv_parameters_weight_ = l_self_modules_blocks_modules_0_modules_qkv_parameters_bias_ = None
        parts = linear.view(2, 8, 3, 4, 8);  linear = None
        permute = parts.permute(2, 0, 3, 1, 4);  parts = None
        unbind = permute.unbind(0);  permute = None
        q = unbind[0]
        k = unbind[1]
        v = unbind[2];  unbind = None
        transpose = k.transpose(-2, -1);  k = None
        matmul = q @ transpose;  q = transpose = None
        scores = matmul / 2.8284271247461903;  matmul = None
        softmax = torch.softmax(scores, dim = -1);  scores = None
        mixed = softmax @ v;  softmax = v = None
        transpose_1 = mixed.transpose(1, 2);  mixed = None
        reshape = transpose_1.reshape(2, 8, 32);  transpose_1 = None
        linear_1 = torch._C._nn.linear(reshape, l_self_modules_blocks_modules_0_modules_out_parameters_weight_, l_self_modules_blocks_modules_0_modules_out_parameters_bias_);  reshape = l_self_modules_blocks_modules_0_modules_out_parameters_weight_ = l_self_modules_blocks_modules_0_modules_out_parameters_bias_ = None
        x_1 = x + linear_1;  x = linear_1 = None
        layer_norm_1 = torch.nn.functional.layer_norm(x_1, (32,), l_self_modules_blocks_modules_0_modules_norm2_parameters_weight_, l_self_modules_blocks_modules_0_modules_norm2_parameters_bias_, 1e-05);  l_self_modules_blocks_modules_0_modules_norm2_parameters_weight_ = l_self_modules_blocks_modules_0_modules_norm2_parameters_bias_ = None
        linear_2 = torch._C._nn.linear(layer_norm_1, l_self_modules_blocks_modules_0_modules_up_parameters_weight_, l_self_modules_blocks_modules_0_modules_up_parameters_bias_);  layer_norm_1 = l_self_modules_blocks_modules_0_modules_up_parameters_weight_ = l_self_modules_blocks_modules_0_modules_up_parameters_bias_ = None
        gelu = torch._C._nn.gelu(linear_2);  linear_2 = None
        linear_3 = torch._C._nn.linear(gelu, l_self_modules_blocks_modules_0_modules_down_parameters_weight_, l_self_modules_blocks_modules_0_modules_down_parameters_bias_);  gelu = l_self_modules_blocks_modules_0_modules_down_parameters_weight_ = l_self_modules_blocks_modules_0_modules_down_parameters_bias_ = None
        x_2 = x_1 + linear_3;  x_1 = linear_3 = None
        layer_norm_2 = torch.nn.functional.layer_norm(x_2, (32,), l_self_modules_blocks_modules_1_modules_norm1_parameters_weight_, l_self_modules_blocks_modules_1_modules_norm1_parameters_bias_, 1e-05);  l_self_modules_blocks_modules_1_modules_norm1_parameters_weight_ = l_self_modules_blocks_modules_1_modules_norm1_parameters_bias_ = None
        linear_4 = torch._C._nn.linear(layer_norm_2, l_self_modules_blocks_modules_1_modules_qkv_parameters_weight_, l_self_modules_blocks_modules_1_modules_qkv_parameters_bias_);  layer_norm_2 = l_self_modules_blocks_modules_1_modules_qkv_parameters_weight_ = l_self_modules_blocks_modules_1_modules_qkv_parameters_bias_ = None
        parts_1 = linear_4.view(2, 8, 3, 4, 8);  linear_4 = None
        permute_1 = parts_1.permute(2, 0, 3, 1, 4);  parts_1 = None
        unbind_1 = permute_1.unbind(0);  permute_1 = None
        q_1 = unbind_1[0]
        k_1 = unbind_1[1]
        v_1 = unbind_1[2];  unbind_1 = None
        transpose_2 = k_1.transpose(-2, -1);  k_1 = None
        matmul_2 = q_1 @ transpose_2;  q_1 = transpose_2 = None
        scores_1 = matmul_2 / 2.8284271247461903;  matmul_2 = None
        softmax_1 = torch.softmax(scores_1, dim = -1);  scores_1 = None
        mixed_1 = softmax_1 @ v_1;  softmax_1 = v_1 = None
        transpose_3 = mixed_1.transpose(1, 2);  mixed_1 = None
        reshape_1 = transpose_3.reshape(2, 8, 32);  transpose_3 = None
        linear_5 = torch._C._nn.linear(reshape_1, l_self_modules_blocks_modules_1_modules_out_parameters_weight_, l_self_modules_blocks_modules_1_modules_out_parameters_bias_);  reshape_1 = l_self_modules_blocks_modules_1_modules_out_parameters_weight_ = l_self_modules_blocks_modules_1_modules_out_parameters_bias_ = None
        x_3 = x_2 + linear_5;  x_2 = linear_5 = None
        layer_norm_3 = torch.nn.functional.layer_norm(x_3, (32,), l_self_modules_blocks_modules_1_modules_norm2_parameters_weight_, l_self_modules_blocks_modules_1_modules_norm2_parameters_bias_, 1e-05);  l_self_modules_blocks_modules_1_modules_norm2_parameters_weight_ = l_self_modules_blocks_modules_1_modules_norm2_parameters_bias_ = None
        linear_6 = torch._C._nn.linear(layer_norm_3, l_self_modules_blocks_modules_1_modules_up_parameters_weight_, l_self_modules_blocks_modules_1_modules_up_parameters_bias_);  layer_norm_3 = l_self_modules_blocks_modules_1_modules_up_parameters_weight_ = l_self_modules_blocks_modules_1_modules_up_parameters_bias_ = None
        gelu_1 = torch._C._nn.gelu(linear_6);  linear_6 = None
        linear_7 = torch._C._nn.linear(gelu_1, l_self_modules_blocks_modules_1_modules_down_parameters_weight_, l_self_modules_blocks_modules_1_modules_down_parameters_bias_);  gelu_1 = l_self_modules_blocks_modules_1_modules_down_parameters_weight_ = l_self_modules_blocks_modules_1_modules_down_parameters_bias_ = None
        x_4 = x_3 + linear_7;  x_3 = linear_7 = None
        layer_norm_4 = torch.nn.functional.layer_norm(x_4, (32,), l_self_modules_norm_parameters_weight_, l_self_modules_norm_parameters_bias_, 1e-05);  x_4 = l_self_modules_norm_parameters_weight_ = l_self_modules_norm_parameters_bias_ = None
        scores_2 = torch._C._nn.linear(layer_norm_4, l_self_modules_head_parameters_weight_, l_self_modules_head_parameters_bias_);  layer_norm_4 = l_self_modules_head_parameters_weight_ = l_self_modules_head_parameters_bias_ = None
        flatten = scores_2.flatten(0, 1);  scores_2 = None
        flatten_1 = l_expected_.flatten();  l_expected_ = None
        cross_entropy = torch.nn.functional.cross_entropy(flatten, flatten_1);  flatten = flatten_1 = None
        return (cross_entropy,)


mod = Repro()

def load_args(reader):
    buf0 = reader.storage('726593696811d38dfeefe60cfff7a3ff18ae47ff', 3072)
    reader.tensor(buf0, (24, 32), requires_grad=True, is_leaf=True)  # L_self_modules_letters_parameters_weight_
    buf1 = reader.storage('ce7334d7cc26eaa4ecf4b479935f6640b4052dd6', 128, dtype_hint=torch.int64)
    reader.tensor(buf1, (2, 8), dtype=torch.int64, is_leaf=True)  # L_text_
    buf2 = reader.storage('9326cc8a520ee9e332e054a54a1f3b3d091144a0', 1024)
    reader.tensor(buf2, (8, 32), requires_grad=True, is_leaf=True)  # L_self_parameters_positions_
    buf3 = reader.storage('4f9470124a5784ed880ee567589a12a53f3ac18d', 128)
    reader.tensor(buf3, (32,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_0_modules_norm1_parameters_weight_
    buf4 = reader.storage('0ae4f711ef5d6e9d26c611fd2c8c8ac45ecbf9e7', 128)
    reader.tensor(buf4, (32,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_0_modules_norm1_parameters_bias_
    buf5 = reader.storage('7777c855a456e081c4077dae31b2aeb9ddad647f', 12288)
    reader.tensor(buf5, (96, 32), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_0_modules_qkv_parameters_weight_
    buf6 = reader.storage('4e2ec30caa124465dc55f4f490280402ad87f8ce', 384)
    reader.tensor(buf6, (96,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_0_modules_qkv_parameters_bias_
    buf7 = reader.storage('9ade09a8cd24657ed1aaee78e0cdf718f26d375f', 4096)
    reader.tensor(buf7, (32, 32), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_0_modules_out_parameters_weight_
    buf8 = reader.storage('326bb455686d04f1828a4bd6018c46e1587397af', 128)
    reader.tensor(buf8, (32,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_0_modules_out_parameters_bias_
    buf9 = reader.storage('4f9470124a5784ed880ee567589a12a53f3ac18d', 128)
    reader.tensor(buf9, (32,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_0_modules_norm2_parameters_weight_
    buf10 = reader.storage('0ae4f711ef5d6e9d26c611fd2c8c8ac45ecbf9e7', 128)
    reader.tensor(buf10, (32,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_0_modules_norm2_parameters_bias_
    buf11 = reader.storage('68f28cfdc1aa94ac89c77d3c05c8a94a6934dc3d', 8192)
    reader.tensor(buf11, (64, 32), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_0_modules_up_parameters_weight_
    buf12 = reader.storage('26ea9a27c80e4a9febdd185d02b9ef32ead9ec63', 256)
    reader.tensor(buf12, (64,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_0_modules_up_parameters_bias_
    buf13 = reader.storage('6ad2fd7a3f9dd0300b0534d94faf56bac531bbd9', 8192)
    reader.tensor(buf13, (32, 64), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_0_modules_down_parameters_weight_
    buf14 = reader.storage('a2f55b4bc7c5369276c1c0651c14d5e21b65f07b', 128)
    reader.tensor(buf14, (32,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_0_modules_down_parameters_bias_
    buf15 = reader.storage('4f9470124a5784ed880ee567589a12a53f3ac18d', 128)
    reader.tensor(buf15, (32,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_1_modules_norm1_parameters_weight_
    buf16 = reader.storage('0ae4f711ef5d6e9d26c611fd2c8c8ac45ecbf9e7', 128)
    reader.tensor(buf16, (32,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_1_modules_norm1_parameters_bias_
    buf17 = reader.storage('d65cfac43f64a5f697ff497119f88077cb7d2e51', 12288)
    reader.tensor(buf17, (96, 32), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_1_modules_qkv_parameters_weight_
    buf18 = reader.storage('08f71592aacf70bde0d1ef2c2c027a7ea52b9a28', 384)
    reader.tensor(buf18, (96,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_1_modules_qkv_parameters_bias_
    buf19 = reader.storage('aefdacd95e06caa87cbbf7d850d6e1065e733c5f', 4096)
    reader.tensor(buf19, (32, 32), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_1_modules_out_parameters_weight_
    buf20 = reader.storage('67cddb9cf1c225c1e95957b84fa198ff1ffd7ec8', 128)
    reader.tensor(buf20, (32,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_1_modules_out_parameters_bias_
    buf21 = reader.storage('4f9470124a5784ed880ee567589a12a53f3ac18d', 128)
    reader.tensor(buf21, (32,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_1_modules_norm2_parameters_weight_
    buf22 = reader.storage('0ae4f711ef5d6e9d26c611fd2c8c8ac45ecbf9e7', 128)
    reader.tensor(buf22, (32,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_1_modules_norm2_parameters_bias_
    buf23 = reader.storage('416a2dee580055fc079c2c3a6c0d1529d3e0686b', 8192)
    reader.tensor(buf23, (64, 32), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_1_modules_up_parameters_weight_
    buf24 = reader.storage('ccc7755eb5b0afb6dee2518fc174c7ef1416f4af', 256)
    reader.tensor(buf24, (64,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_1_modules_up_parameters_bias_
    buf25 = reader.storage('850344d822af68ffb7a924a3312da118945573e5', 8192)
    reader.tensor(buf25, (32, 64), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_1_modules_down_parameters_weight_
    buf26 = reader.storage('14c8005fde4800fb9bc33f4f918bf9b4872f559c', 128)
    reader.tensor(buf26, (32,), requires_grad=True, is_leaf=True)  # L_self_modules_blocks_modules_1_modules_down_parameters_bias_
    buf27 = reader.storage('4f9470124a5784ed880ee567589a12a53f3ac18d', 128)
    reader.tensor(buf27, (32,), requires_grad=True, is_leaf=True)  # L_self_modules_norm_parameters_weight_
    buf28 = reader.storage('0ae4f711ef5d6e9d26c611fd2c8c8ac45ecbf9e7', 128)
    reader.tensor(buf28, (32,), requires_grad=True, is_leaf=True)  # L_self_modules_norm_parameters_bias_
    buf29 = reader.storage('d53a07d0fed01bd7c09574a55b537b9dd5746b95', 3072)
    reader.tensor(buf29, (24, 32), requires_grad=True, is_leaf=True)  # L_self_modules_head_parameters_weight_
    buf30 = reader.storage('5840c2f21c1c72d4e3987a05e38fec2bddf7f899', 96)
    reader.tensor(buf30, (24,), requires_grad=True, is_leaf=True)  # L_self_modules_head_parameters_bias_
    buf31 = reader.storage('1ad86b0a82b8b3204b2a7b144788f4855299df4a', 128, dtype_hint=torch.int64)
    reader.tensor(buf31, (2, 8), dtype=torch.int64, is_leaf=True)  # L_expected_
load_args._version = 0

if __name__ == '__main__':
    from torch._dynamo.repro.after_dynamo import run_repro
    run_repro(mod, load_args, accuracy=False, command='minify',
        save_dir='checkpoints', autocast=False, backend='inductor')
