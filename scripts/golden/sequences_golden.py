#!/usr/bin/env python3
"""Reference values for models that take sequences, from NumPy in 64 bits; PyTorch's nn.GRU must say the same.

Needs NumPy and PyTorch. Use, from the repository's root:

    python3 scripts/golden/sequences_golden.py

writes crates/dtkc-onnx/src/testing/sequences.json: two networks with their weights, sequences of several lengths, and
what each network should answer.
"""
import json
import pathlib

import numpy as np
import torch

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/dtkc-onnx/src/testing/sequences.json"
DIM, UNITS, HIDDEN, CLUSTERS, STEPS = 3, 4, 6, 3, 5
LENGTHS = [7, 1, 2, 12, 30, 1, 5]


def weights(rng, *shape, reach=0.8, around=0.0):
    """Numbers that 32 bits hold exactly."""
    return (around + rng.uniform(-reach, reach, shape)).astype(np.float32).astype(np.float64)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def direction(gru, steps):
    """The states of one direction after each step; gates are z, r, h, the reset gate acts behind the product."""
    units = gru["recurrent"].shape[1]
    state, states = np.zeros(units), []
    for x in steps:
        a = gru["input"] @ x + gru["input_bias"]
        b = gru["recurrent"] @ state + gru["recurrent_bias"]
        z = sigmoid(a[:units] + b[:units])
        r = sigmoid(a[units : 2 * units] + b[units : 2 * units])
        n = np.tanh(a[2 * units :] + r * b[2 * units :])
        state = (1 - z) * n + z * state
        states.append(state)
    return np.array(states)


def bidirectional(layer, steps):
    ahead = direction(layer["forward"], steps)
    back = direction(layer["backward"], steps[::-1])[::-1]
    return np.concatenate([ahead, back], axis=1)


def gru_answers(net, sequence):
    x = (sequence - net["mean"]) / net["deviation"]
    first = bidirectional(net["gru"][0], x)
    second = bidirectional(net["gru"][1], first)
    last = np.concatenate([second[-1, :UNITS], second[0, UNITS:]])
    hidden = np.maximum(last @ net["dense"] + net["dense_bias"], 0)
    norm = net["norm"]
    z = norm["gamma"] * (hidden - norm["mean"]) / np.sqrt(norm["variance"] + norm["epsilon"]) + norm["beta"]
    logits = z @ net["output"] + net["output_bias"]
    p = np.exp(logits - logits.max())
    return p / p.sum(), z


def resampled_answers(net, sequence):
    x = (sequence - net["mean"]) / net["deviation"]
    places = np.arange(STEPS) * (len(x) - 1) / (STEPS - 1)
    z = np.stack([np.interp(places, np.arange(len(x)), column) for column in x.T], axis=1).ravel()
    t = 1 / (1 + ((z - net["centres"]) ** 2).sum(axis=1))
    return t / t.sum(), z


def check_with_torch(net, sequences):
    """The same GRUs in PyTorch, on packed sequences. Its gates are r, z, n."""
    swap = np.r_[UNITS : 2 * UNITS, :UNITS, 2 * UNITS : 3 * UNITS]
    gru = torch.nn.GRU(DIM, UNITS, num_layers=2, batch_first=True, bidirectional=True).double()
    for number, layer in enumerate(net["gru"]):
        for suffix, part in (("", layer["forward"]), ("_reverse", layer["backward"])):
            names = {"weight_ih": "input", "weight_hh": "recurrent", "bias_ih": "input_bias", "bias_hh": "recurrent_bias"}
            for theirs, ours in names.items():
                getattr(gru, f"{theirs}_l{number}{suffix}").data = torch.from_numpy(part[ours][swap])
    scaled = [torch.from_numpy((s - net["mean"]) / net["deviation"]) for s in sequences]
    _, last = gru(torch.nn.utils.rnn.pack_sequence(scaled, enforce_sorted=False))
    found = torch.cat([last[2], last[3]], dim=1).detach().numpy()
    for sequence, row in zip(sequences, found):
        x = (sequence - net["mean"]) / net["deviation"]
        second = bidirectional(net["gru"][1], bidirectional(net["gru"][0], x))
        assert np.abs(row - np.concatenate([second[-1, :UNITS], second[0, UNITS:]])).max() < 1e-12


def gru_layer(rng, width):
    part = lambda: {
        "input": weights(rng, 3 * UNITS, width), "recurrent": weights(rng, 3 * UNITS, UNITS),
        "input_bias": weights(rng, 3 * UNITS), "recurrent_bias": weights(rng, 3 * UNITS),
    }
    return {"forward": part(), "backward": part()}


def plain(value):
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def main():
    rng = np.random.default_rng(7)
    scale = {"mean": weights(rng, DIM), "deviation": weights(rng, DIM, reach=0.4, around=1)}
    net = scale | {
        "gru": [gru_layer(rng, DIM), gru_layer(rng, 2 * UNITS)],
        "dense": weights(rng, 2 * UNITS, HIDDEN), "dense_bias": weights(rng, HIDDEN),
        "norm": {
            "gamma": weights(rng, HIDDEN, around=1), "beta": weights(rng, HIDDEN), "mean": weights(rng, HIDDEN),
            "variance": weights(rng, HIDDEN, reach=0.5, around=1), "epsilon": 0.0009765625,
        },
        "output": weights(rng, HIDDEN, CLUSTERS, reach=2), "output_bias": weights(rng, CLUSTERS),
    }
    centres = scale | {"steps": STEPS, "centres": weights(rng, CLUSTERS, STEPS * DIM, reach=2)}
    sequences = [weights(rng, length, DIM, reach=2) for length in LENGTHS]
    check_with_torch(net, sequences)
    answers = lambda function, of: [dict(zip(("probabilities", "embedding"), function(of, s))) for s in sequences]
    golden = {
        "gru": net, "gru_answers": answers(gru_answers, net),
        "resampled": centres, "resampled_answers": answers(resampled_answers, centres), "sequences": sequences,
    }
    OUT.write_text(json.dumps(plain(golden)) + "\n")


if __name__ == "__main__":
    main()
