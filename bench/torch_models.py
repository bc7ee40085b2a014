"""Writes networks as torch exports them, with random weights (seed 1), for `bench/attention.py` and `bench/peers/cpu.sh`.

    /usr/bin/python3 bench/torch_models.py FOLDER [TORCHVISION...]      # After scripts/install.sh --exporters.

Without names those below; with names, each network of torchvision.models that is called so, batch 1, 224x224.
4 layers of width 512 with 8 heads:
gpt2.onnx     256 tokens; Q, K and V split out of one product, a causal mask by Where with the lowest number, GELU by tanh
llama.onnx    256 tokens; RMS norm, rotary embeddings, 2 heads of keys for 8 of queries, a causal mask by a sum, SwiGLU
vit.onnx      197 tokens; Q, K and V gathered out of one product
swin.onnx     16 windows of 49 tokens; the same with a bias for each score and queries scaled in front of the product
By torch.nn's own layers:
encoder.onnx  6 layers of width 512 with 8 heads, 128 tokens
detr.onnx     the transformer of DETR: 6 + 6 layers of width 256 with 8 heads, 850 positions, 100 queries
setr.onnx     a segmentation ViT: patches of 16 of a 512x512 image, 8 layers of width 384 with 6 heads, a bilinear head
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


# Functions in the place of names keep torch's layers off their fused path, which has no export.
def relu(x):
    return F.relu(x)


def gelu(x):
    return F.gelu(x)


class Detr(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.Transformer(256, 8, 6, 6, 2048, dropout=0.0, activation=relu)
        self.queries, self.positions = nn.Parameter(torch.randn(100, 1, 256)), nn.Parameter(torch.randn(850, 1, 256))
        self.classes, self.boxes = nn.Linear(256, 92), nn.Linear(256, 4)

    def forward(self, x):
        found = self.transformer(x + self.positions, self.queries.expand(-1, x.shape[1], -1))
        return self.classes(found), self.boxes(found).sigmoid()


class Setr(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.positions = nn.Conv2d(3, 384, 16, 16), nn.Parameter(torch.randn(1024, 1, 384) * 0.02)
        layer = nn.TransformerEncoderLayer(384, 6, 1536, 0.0, gelu, norm_first=True)
        self.encoder, self.norm = nn.TransformerEncoder(layer, 8), nn.LayerNorm(384)
        self.head = nn.Sequential(nn.Conv2d(384, 256, 1), nn.BatchNorm2d(256), nn.ReLU(), nn.Conv2d(256, 19, 1))

    def forward(self, x):
        h = self.patches(x).flatten(2).permute(2, 0, 1) + self.positions
        h = self.norm(self.encoder(h)).permute(1, 2, 0).reshape(1, 384, 32, 32)
        return F.interpolate(self.head(h), scale_factor=4.0, mode="bilinear", align_corners=False)


def with_own_weights(model):
    """The model with different weights in layers that torch copies from one."""
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    return model


def networks():
    yield "gpt2", Layers(GptBlock), (1, 256, WIDTH)
    yield "llama", Llama(256), (1, 256, WIDTH)
    yield "vit", Layers(VitBlock), (1, 197, WIDTH)
    yield "swin", Layers(lambda: VitBlock(49)), (16, 49, WIDTH)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, HEADS, 2048, 0.0, relu), 6)
    yield "encoder", with_own_weights(encoder), (128, 1, WIDTH)
    yield "detr", with_own_weights(Detr()), (850, 1, 256)
    yield "setr", with_own_weights(Setr()), (1, 3, 512, 512)


def of_torchvision(names):
    import torchvision
    F.dropout = lambda x, *_, **__: x  # Swin calls it as in training, which OpenVINO does not read.
    for name in names:
        if not hasattr(torchvision.models, name):
            sys.exit(f"torch_models.py: torchvision {torchvision.__version__} has no network '{name}'")
        yield name, getattr(torchvision.models, name)(weights=None), (1, 3, 224, 224)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder, *names = sys.argv[1:]
    torch.manual_seed(1)
    os.makedirs(folder, exist_ok=True)
    for name, model, shape in of_torchvision(names) if names else networks():
        path = os.path.join(folder, name + ".onnx")
        with torch.no_grad():
            torch.onnx.export(model.eval(), torch.randn(shape), path, opset_version=16, input_names=["x"], output_names=["y"])


if __name__ == "__main__":
    main()
