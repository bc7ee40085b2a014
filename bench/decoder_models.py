"""Writes small decoders and vision transformers as torch exports them, for `bench/attention.py MODEL.onnx`.

    /usr/bin/python3 bench/decoder_models.py FOLDER        # After scripts/install.sh --exporters.

Each has 4 layers of width 512 with 8 heads and random weights (seed 1):
gpt2.onnx    256 tokens; Q, K and V split out of one product, a causal mask by Where with the lowest number, GELU by tanh
llama.onnx   256 tokens; RMS norm, rotary embeddings, 2 heads of keys for 8 of queries, a causal mask by a sum, SwiGLU
vit.onnx     197 tokens; Q, K and V gathered out of one product
swin.onnx    16 windows of 49 tokens; the same with a bias for each score and queries scaled in front of the product
"""
import math
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS = 512, 8, 4
SIZE = WIDTH // HEADS
LOWEST = torch.finfo(torch.float32).min


class GptBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("causal", torch.tril(torch.ones(1024, 1024, dtype=torch.bool)).view(1, 1, 1024, 1024))

    def forward(self, x):
        batch, tokens, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (part.view(batch, tokens, HEADS, SIZE).permute(0, 2, 1, 3) for part in parts)
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(SIZE)
        scores = torch.where(self.causal[:, :, :tokens, :tokens], scores, torch.tensor(LOWEST))
        y = torch.matmul(F.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous().view(batch, tokens, width)
        x = x + self.out(y)
        h = self.up(self.norm2(x))
        h = 0.5 * h * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (h + 0.044715 * torch.pow(h, 3.0))))
        return x + self.down(h)


class RmsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(WIDTH) + 0.5)

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


class LlamaBlock(nn.Module):
    def __init__(self, kv_heads=2, inner=1408):
        super().__init__()
        self.kv_heads = kv_heads
        self.norm1, self.norm2 = RmsNorm(), RmsNorm()
        linear = lambda rows, columns: nn.Linear(rows, columns, bias=False)
        self.q, self.out = linear(WIDTH, WIDTH), linear(WIDTH, WIDTH)
        self.k, self.v = linear(WIDTH, kv_heads * SIZE), linear(WIDTH, kv_heads * SIZE)
        self.gate, self.up, self.down = linear(WIDTH, inner), linear(WIDTH, inner), linear(inner, WIDTH)

    def forward(self, x, cos, sin, mask):
        batch, tokens, width = x.shape
        h = self.norm1(x)
        heads = lambda y, count: y.view(batch, tokens, count, SIZE).transpose(1, 2)
        q, k, v = heads(self.q(h), HEADS), heads(self.k(h), self.kv_heads), heads(self.v(h), self.kv_heads)
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        repeat = lambda y: (y[:, :, None].expand(batch, self.kv_heads, HEADS // self.kv_heads, tokens, SIZE)
                            .reshape(batch, HEADS, tokens, SIZE))
        scores = torch.matmul(q, repeat(k).transpose(2, 3)) / math.sqrt(SIZE) + mask
        y = torch.matmul(F.softmax(scores, dim=-1), repeat(v))
        x = x + self.out(y.transpose(1, 2).contiguous().reshape(batch, tokens, width))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, tokens):
        super().__init__()
        self.blocks, self.norm = nn.ModuleList(LlamaBlock() for _ in range(LAYERS)), RmsNorm()
        rates = 1.0 / (10000 ** (torch.arange(0, SIZE, 2).float() / SIZE))
        angles = torch.outer(torch.arange(tokens).float(), rates).repeat(1, 2)
        self.register_buffer("cos", angles.cos()[None, None])
        self.register_buffer("sin", angles.sin()[None, None])
        self.register_buffer("mask", torch.triu(torch.full((tokens, tokens), LOWEST), 1)[None, None])

    def forward(self, x):
        for block in self.blocks:
            x = block(x, self.cos, self.sin, self.mask)
        return self.norm(x)


class VitBlock(nn.Module):
    def __init__(self, bias_tokens=0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.bias = nn.Parameter(torch.randn(HEADS, bias_tokens, bias_tokens)) if bias_tokens else None

    def forward(self, x):
        batch, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, tokens, 3, HEADS, SIZE).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        if self.bias is None:
            scores = (q @ k.transpose(-2, -1)) * SIZE**-0.5
        else:
            scores = (q * SIZE**-0.5) @ k.transpose(-2, -1) + self.bias.unsqueeze(0)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Layers(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.blocks, self.norm = nn.ModuleList(make() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.manual_seed(1)
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, model, shape in (
        ("gpt2", Layers(GptBlock), (1, 256, WIDTH)),
        ("llama", Llama(256), (1, 256, WIDTH)),
        ("vit", Layers(VitBlock), (1, 197, WIDTH)),
        ("swin", Layers(lambda: VitBlock(49)), (16, 49, WIDTH)),
    ):
        path = os.path.join(sys.argv[1], name + ".onnx")
        with torch.no_grad():
            torch.onnx.export(model.eval(), torch.randn(shape), path, opset_version=16, input_names=["x"], output_names=["y"])


if __name__ == "__main__":
    main()
