"""Writes ONNX models with PyTorch's exporter: pictures (torchvision), text, sound, detectors, with an open batch.

usage: torch_models.py FOLDER [NAME...]   (Debian's python3-torch and python3-torchvision)
A model of opset N becomes FOLDER/NAME.opsetN.onnx; a file that is there stays. Weights are random, from one seed.
"""
from __future__ import annotations

import os
import sys
import warnings
from typing import Any, Callable

import torch
import torchvision
from torch import nn

OPSETS = (11, 13, 17)


class Attention(nn.Module):
    """Attention over heads as PyTorch users write it; `causal` masks what comes later."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal = heads, causal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = qkv[0] @ qkv[1].transpose(-2, -1) / (width // self.heads) ** 0.5
        if self.causal:
            places = torch.arange(length)
            later = (places[None, :] > places[:, None]).to(scores.dtype)
            scores = scores + later * -1e4
        mixed = scores.softmax(-1) @ qkv[2]
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Transformer(nn.Module):
    """An encoder (norms behind, as BERT) or a decoder (norms before, causal, as GPT-2) over tokens."""

    def __init__(self, layers: int, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(1000, width), nn.Embedding(512, width)
        self.causal = causal
        self.blocks = nn.ModuleList(
            nn.ModuleList([
                Attention(width, heads, causal),
                nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)),
                nn.LayerNorm(width),
                nn.LayerNorm(width)
            ]) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        for attention, mlp, norm1, norm2 in self.blocks:
            if self.causal:
                x = x + attention(norm1(x))
                x = x + mlp(norm2(x))
            else:
                x = norm1(x + attention(x))
                x = norm2(x + mlp(x))
        return self.head(self.norm(x))


class Recurrent(nn.Module):
    """Features, a bidirectional recurrent layer, classes for each step: the shape of text readers and speech models."""

    def __init__(self, kind: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.before = nn.Conv1d(40, 64, 3, padding=1)
        self.cells = kind(64, 96, num_layers=2, batch_first=True, **options)
        self.after = nn.Linear(96 * (2 if options.get("bidirectional") else 1), 50)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.before(x).relu().transpose(1, 2)
        return self.after(self.cells(x)[0]).log_softmax(-1)


class UNet(nn.Module):
    """A segmentation net; it grows by transposed convolutions or by interpolation."""

    def __init__(self, transposed: bool) -> None:
        super().__init__()

        def block(a: int, b: int) -> nn.Sequential:
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
                                 nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())

        widths = (16, 32, 64, 128)
        self.down = nn.ModuleList(block(a, b) for a, b in zip((3,) + widths, widths))
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(2 * w, w, 2, stride=2) if transposed else nn.Sequential(
                nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), nn.Conv2d(2 * w, w, 1))
            for w in widths[-2::-1])
        self.join = nn.ModuleList(block(2 * w, w) for w in widths[-2::-1])
        self.pool, self.classes = nn.MaxPool2d(2), nn.Conv2d(widths[0], 5, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else self.pool(x))
            kept.append(x)
        for up, join, skip in zip(self.up, self.join, kept[-2::-1]):
            x = join(torch.cat([up(x), skip], 1))
        return self.classes(x)


class Conformer(nn.Module):
    """One block of a conformer (Gulati and others 2020): half a feed-forward step on both sides of attention and convolution."""

    def __init__(self, width: int = 144) -> None:
        super().__init__()

        def step() -> nn.Sequential:
            return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(),
                                 nn.Linear(4 * width, width))

        self.first, self.second = step(), step()
        self.norm, self.attention = nn.LayerNorm(width), Attention(width, 4, False)
        self.before = nn.LayerNorm(width)
        self.convolve = nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.GLU(1),
                                      nn.Conv1d(width, width, 31, padding=15, groups=width),
                                      nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1))
        self.last = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + 0.5 * self.first(x)
        x = x + self.attention(self.norm(x))
        x = x + self.convolve(self.before(x).transpose(1, 2)).transpose(1, 2)
        return self.last(x + 0.5 * self.second(x))


def picture(side: int = 224) -> torch.Tensor:
    return torch.rand(1, 3, side, side)


def tokens(length: int = 64) -> torch.Tensor:
    return torch.randint(0, 1000, (1, length))


def vision(name: str, **options: Any) -> Callable[[], nn.Module]:
    return lambda: getattr(torchvision.models, name)(weights=None, **options)


def detection(name: str) -> Callable[[], nn.Module]:
    return lambda: getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None)


# Name, maker, example input, axes that are open (None: all is fixed), opsets.
Row = tuple[str, Callable[[], nn.Module], torch.Tensor, "dict[int, str] | None", tuple[int, ...]]
BATCH = {0: "batch"}
ROWS: list[Row] = [
    ("resnet18", vision("resnet18"), picture(), BATCH, OPSETS),
    ("resnet50", vision("resnet50"), picture(), BATCH, (13,)),
    ("inception_v3", vision("inception_v3", aux_logits=False, init_weights=False), picture(299), BATCH, (13,)),
    ("googlenet", vision("googlenet", aux_logits=False, init_weights=False), picture(), BATCH, (11, 17)),
    ("densenet121", vision("densenet121"), picture(), BATCH, (13,)),
    ("mobilenet_v2", vision("mobilenet_v2"), picture(), BATCH, OPSETS),
    ("mobilenet_v3", vision("mobilenet_v3_small"), picture(), BATCH, OPSETS),
    ("efficientnet_b0", vision("efficientnet_b0"), picture(), BATCH, (13, 17)),
    ("convnext_tiny", vision("convnext_tiny"), picture(), BATCH, (13, 17)),
    ("vit_b_16", vision("vit_b_16"), picture(), BATCH, (17,)),
    ("swin_t", vision("swin_t"), picture(), None, (13, 17)),
    ("shufflenet", vision("shufflenet_v2_x1_0"), picture(), BATCH, (11,)),
    ("bert", lambda: Transformer(4, 256, 4, False), tokens(), {0: "batch", 1: "sequence"}, OPSETS),
    ("gpt2", lambda: Transformer(4, 256, 4, True), tokens(), {0: "batch", 1: "sequence"}, (13, 17)),
    ("lstm", lambda: Recurrent(nn.LSTM, bidirectional=True), torch.rand(1, 40, 50), {0: "batch", 2: "time"}, OPSETS),
    ("gru", lambda: Recurrent(nn.GRU, bidirectional=True), torch.rand(1, 40, 50), {0: "batch", 2: "time"}, OPSETS),
    ("rnn", lambda: Recurrent(nn.RNN), torch.rand(1, 40, 50), {0: "batch", 2: "time"}, (13,)),
    ("unet_transposed", lambda: UNet(True), picture(128), {0: "batch", 2: "height", 3: "width"}, OPSETS),
    ("unet_resize", lambda: UNet(False), picture(128), {0: "batch", 2: "height", 3: "width"}, OPSETS),
    ("conformer", Conformer, torch.rand(1, 80, 144), {0: "batch", 1: "time"}, (13, 17)),
    ("ssdlite", detection("ssdlite320_mobilenet_v3_large"), picture(320), None, (11, 17)),
    ("faster_rcnn", detection("fasterrcnn_mobilenet_v3_large_320_fpn"), picture(320), None, (11, 17)),
]


def main() -> int:
    folder, wanted = sys.argv[1], set(sys.argv[2:])
    os.makedirs(folder, exist_ok=True)
    warnings.simplefilter("ignore")
    for name, make, example, axes, opsets in ROWS:
        if wanted and name not in wanted:
            continue
        paths = {opset: os.path.join(folder, f"{name}.opset{opset}.onnx") for opset in opsets}
        if all(os.path.exists(path) for path in paths.values()):
            continue
        torch.manual_seed(7)
        model = make().eval()
        for opset, path in paths.items():
            given = ([example[0]],) if name in ("ssdlite", "faster_rcnn") else (example,)
            torch.onnx.export(model, given, path + ".part", opset_version=opset, input_names=["x"],
                              dynamic_axes={"x": axes} if axes else None)
            os.replace(path + ".part", path)
            print(path, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
