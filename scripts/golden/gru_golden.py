#!/usr/bin/env python3
"""Reference values for the recurrent layer of dtkc-ops: PyTorch's nn.GRU in f64 over packed sequences, with the gradients
of autograd for values, weights and biases.

PyTorch's gates are in the order r z n; here they are in ONNX's order z r n.
Use: python3 scripts/golden/gru_golden.py > crates/dtkc-ops/tests/golden/gru.json
"""
import json
import sys

import torch
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

torch.manual_seed(2001)
torch.set_default_dtype(torch.float64)


def rounded(tensor):
    return [round(value, 10) for value in tensor.detach().reshape(-1).tolist()]


def reorder(tensor, units):
    """r z n -> z r n along the first axis."""
    r, z, n = tensor.split(units)
    return torch.cat([z, r, n])


def case(name, lengths, inputs, units, scale=1.0):
    # Values and weights are exact in f32, so that both sides begin with the same numbers.
    single = lambda tensor: tensor.to(torch.float32).to(torch.float64)
    gru = torch.nn.GRU(inputs, units, bidirectional=True)
    with torch.no_grad():
        for weight in gru.parameters():
            weight.copy_(single(scale * torch.randn_like(weight) / units**0.5))
    x = [single(torch.randn(length, inputs)).requires_grad_() for length in lengths]
    packed = pack_sequence(x, enforce_sorted=False)
    y, last = gru(packed)
    padded, _ = pad_packed_sequence(y, batch_first=True)
    steps = torch.cat([padded[i, :length] for i, length in enumerate(lengths)])
    last = torch.cat([last[0], last[1]], dim=1)
    out = {"name": name, "lengths": lengths, "inputs": inputs, "units": units, "x": rounded(torch.cat(x))}
    names = {"input": "weight_ih", "recurrent": "weight_hh", "input_bias": "bias_ih", "recurrent_bias": "bias_hh"}
    parameters = dict(gru.named_parameters())
    both = lambda kind, read: torch.cat(
        [reorder(read(parameters[f"{names[kind]}_l0{end}"]), units).reshape(-1) for end in ("", "_reverse")]
    )
    for kind in names:
        out[kind] = rounded(both(kind, lambda weight: weight.detach()))
    for which, result in (("steps", steps), ("last", last)):
        upstream = single(torch.randn_like(result))
        for tensor in [*x, *gru.parameters()]:
            tensor.grad = None
        (result * upstream).sum().backward(retain_graph=True)
        gradients = {kind: rounded(both(kind, lambda weight: weight.grad)) for kind in names}
        gradients["x"] = rounded(torch.cat([tensor.grad for tensor in x]))
        out[which] = {"values": rounded(result), "upstream": rounded(upstream), "gradients": gradients}
    return out


def main():
    cases = [
        case("ragged", [3, 7, 1, 5, 7, 2], 3, 4),
        case("one step", [1, 1, 1], 2, 3),
        case("one sequence of one step", [1], 1, 1),
        case("one long sequence", [71], 2, 5),
        case("more than a group and than a block", [40, 3, 33, 32, 1, 31, 64, 65, 2, 9, 17, 5, 33, 12], 2, 3),
        case("units of a whole register tile", [9, 4, 6], 13, 16),
        case("units beyond it", [6, 2], 5, 33),
        case("saturated gates", [5, 8, 3], 3, 4, scale=12.0),
    ]
    json.dump({"cases": cases}, sys.stdout, separators=(",", ":"))
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
