#!/usr/bin/env python3
"""Reference values for the recurrent network of dtkc-core: scaling, PyTorch's nn.GRU in f64 over packed sequences, the
clustering module and the whole loss, with autograd's gradient of every parameter.

Use: python3 scripts/golden/core_sequences.py > crates/dtkc-core/tests/golden/sequences.json
"""
import json
import sys

import numpy as np
import torch
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

from core_networks import losses, norm, weighted
from gru_golden import reorder, rounded

NAMES = {"input": "weight_ih", "recurrent": "weight_hh", "input_bias": "bias_ih", "recurrent_bias": "bias_hh"}
EPSILON = 1e-3
LOSS = {
    "separation": 1.0, "simplex": 1.0, "orthogonality": 1.0, "membership_sum": "sum", "lambda": 0.7, "bandwidth": "squared",
    "sigma": 0.15, "balance": 0.0, "certainty": 0.0, "consistency": 0.0, "mutual_information": 0.0, "self_label": 0.0,
}


def single(values):
    """Numbers that are exact in f32, so that both sides begin with the same."""
    return torch.tensor(np.asarray(values, dtype=np.float32).astype(np.float64))


def sequences(rng, lengths, dim):
    """Waves of a few kinds with noise, of another size and place in every dimension."""
    scale, shift = 10.0 ** rng.uniform(-1, 2, dim), rng.normal(size=dim) * 5
    wave = lambda kind, t: np.sin(np.outer(t, 0.2 + 0.1 * kind + 0.3 * np.arange(dim)) + kind)
    return [single((wave(i % 4, np.arange(n)) + 0.1 * rng.normal(size=(n, dim))) * scale + shift)
            for i, n in enumerate(lengths)]


def case(name, lengths, dim, units, layers, hidden, k, loss, seed):
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    x = sequences(rng, lengths, dim)
    steps = torch.cat(x)
    mean, deviation = steps.mean(0), steps.std(0, unbiased=False)
    grus = [torch.nn.GRU(dim if layer == 0 else 2 * units, units, bidirectional=True) for layer in range(layers)]
    state = {}
    with torch.no_grad():
        for gru in grus:
            for weight in gru.parameters():
                weight.copy_(single(rng.normal(size=weight.shape) / np.sqrt(units)))
    add = lambda name, *shape, scale: state.__setitem__(name, single(rng.normal(size=shape) * scale).requires_grad_())
    add("hidden.weight", 2 * units, hidden, scale=1.0)
    add("hidden.bias", hidden, scale=0.3)
    add("hidden_norm.gamma", hidden, scale=1.0)
    add("hidden_norm.beta", hidden, scale=0.5)
    add("output.weight", hidden, k, scale=1.0)
    add("output.bias", k, scale=0.2)
    states, taps = [(one - mean) / deviation for one in x], []
    for gru in grus:
        y, last = gru(pack_sequence(states, enforce_sorted=False))
        padded, _ = pad_packed_sequence(y, batch_first=True)
        states = [padded[i, :length] for i, length in enumerate(lengths)]
        taps.append(torch.cat([last[0], last[1]], dim=1))
    z = torch.relu(taps[-1] @ state["hidden.weight"] + state["hidden.bias"])
    z = norm(z, state, "hidden_norm", [], EPSILON)
    logits = z @ state["output.weight"] + state["output.bias"]
    terms = losses(taps, z, logits, None, loss)
    total = weighted(terms, loss)
    total.backward()
    arrays = {name: (value, value.grad) for name, value in state.items()}
    for layer, gru in enumerate(grus):
        parameters = dict(gru.named_parameters())
        for kind, torch_name in NAMES.items():
            both = lambda read: torch.stack(
                [reorder(read(parameters[f"{torch_name}_l0{end}"]), units) for end in ("", "_reverse")]
            )
            arrays[f"recurrent.{layer}.{kind}"] = (both(lambda w: w.detach()), both(lambda w: w.grad))
    out = {
        "name": name, "lengths": lengths, "dim": dim, "units": units, "layers": layers, "hidden": hidden, "clusters": k,
        "loss": {key: loss[key] for key in ("bandwidth", "sigma", "lambda", "membership_sum")},
        "values": rounded(steps), "mean": rounded(mean), "deviation": rounded(deviation),
        "taps": [rounded(tap) for tap in taps], "embedding": rounded(z), "membership": rounded(torch.softmax(logits, 1)),
        "terms": {key: value.item() for key, value in terms.items()}, "total": total.item(),
    }
    out["state"] = {
        key: {"shape": list(value.shape), "values": rounded(value), "gradient": rounded(gradient)}
        for key, (value, gradient) in arrays.items()
    }
    return out


def main():
    paper = {**LOSS, "bandwidth": "distance", "sigma": 0.6}
    cases = [
        case("two layers", [9, 4, 14, 6, 1, 35, 8, 8, 2, 12], 3, 4, 2, 7, 3, LOSS, 3),
        case("one layer, the paper's bandwidth", [5, 5, 5, 5, 5, 5, 5, 5], 2, 3, 1, 5, 2, paper, 4),
    ]
    json.dump(cases, sys.stdout, separators=(",", ":"))
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
