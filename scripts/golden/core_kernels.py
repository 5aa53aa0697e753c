"""The cases of kernels.json, but for those that lack rank."""
import numpy as np
import torch

from core_deficient import deficient
from core_networks import entropy, paired_terms
from core_numpy import (NARROW, RULES, bandwidth, closeness, conditioned, d_cs, difference, flat, grouped, l2_sum,
                        single, softmax, tensor_distances, vector_distances)


def kernel_case(name, y, u, distances, rules=RULES):
    """Distances, kernels and the companion objective of one output, with gradients for output and membership."""
    case = {"name": name, "shape": list(y.shape), "output": flat(y), "distances": flat(distances(y)), "rules": {}}
    for rule, sigma in rules.items():
        b = bandwidth(distances(y), rule, sigma)
        case["rules"][rule] = {
            "sigma": sigma,
            "bandwidth": b,
            "kernel": flat(np.exp(-distances(y) / b)),
            "objective": d_cs(u, np.exp(-distances(y) / b)),
            "output_gradient": flat(difference(lambda t: d_cs(u, np.exp(-distances(t) / b)), y)),
            "membership_gradient": flat(difference(lambda t: d_cs(t, np.exp(-distances(y) / b)), u)),
        }
    return case


def kernels():
    rng = np.random.default_rng(7)
    n, k = 7, 4
    u = softmax(rng.normal(size=(n, k)) * 1.5)
    outputs = [
        ("vector", rng.normal(size=(n, 6)), vector_distances),
        ("matrix", rng.normal(size=(n, 3, 5)), tensor_distances),
        ("block", rng.normal(size=(n, 5, 4, 3)), tensor_distances),
        ("wide block", rng.normal(size=(n, 2, 3, 11)), tensor_distances),
        ("rank 4", rng.normal(size=(n, 2, 3, 2, 4)), tensor_distances),
    ]
    z = outputs[0][1]
    kernel = np.exp(-vector_distances(z) / bandwidth(vector_distances(z), "squared", 0.3))
    terms = paper_terms(u, kernel)
    paired = paired_case(rng)
    cases = [kernel_case(name, y, u, distances) for name, y, distances in outputs]
    return {"membership_shape": [n, k], "membership": flat(u), "terms": terms, "cases": cases, "paired": paired,
            "narrow": narrow(u), "deficient": deficient(u), "fine": fine_cases()}


def paper_terms(u, kernel):
    n = len(u)
    return {
        "separation": d_cs(u, kernel),
        "orthogonality": l2_sum(u),
        "orthogonality_mean": l2_sum(u) * 2 / (n * (n - 1)),
        "simplex": d_cs(closeness(u), kernel),
        "orthogonality_gradient": flat(difference(l2_sum, u)),
        "simplex_gradient": flat(difference(lambda t: d_cs(closeness(t), kernel), u)),
    }


def paired_case(rng):
    """Terms without a kernel, with their gradients for the logits."""
    first = rng.normal(size=(5, 4)) * 1.5
    data = np.concatenate([first, first + rng.normal(size=(5, 4)) * 0.7])
    case = {"shape": list(data.shape), "logits": flat(data), "temperature": 0.6, "threshold": 0.6, "terms": {}}
    for name in ("consistency", "mutual_information", "self_label", "balance", "certainty"):
        logits = torch.tensor(data, requires_grad=True)
        u = torch.softmax(logits, 1)
        terms = paired_terms(logits, {"consistency_temperature": 0.6, "self_label_threshold": 0.6})
        terms["balance"] = np.log(4) - entropy(u.mean(0))
        terms["certainty"] = -(u * torch.log(u)).sum(1).mean()
        terms[name].backward()
        case["terms"][name] = {"value": terms[name].item(), "gradient": flat(logits.grad)}
    return case


def narrow(u):
    """Kernels, objectives and the paper's terms at the factor .15."""
    rng, n = np.random.default_rng(27), len(u)
    outputs = [("narrow vector", grouped(rng, n, (6,), 0.25), vector_distances),
               ("narrow matrix", grouped(rng, n, (3, 5), 0.2), tensor_distances),
               ("narrow block", grouped(rng, n, (4, 3, 3), 0.15), tensor_distances)]
    for name, y, _ in outputs[1:]:
        conditioned(name, y)
    d = vector_distances(outputs[0][1])
    terms = {rule: paper_terms(u, np.exp(-d / bandwidth(d, rule, sigma))) for rule, sigma in NARROW.items()}
    return {"cases": [kernel_case(name, y, u, distances, NARROW) for name, y, distances in outputs], "terms": terms}


def information(u, v):
    """log k - I from its definition, sum p log(p / (row sum * column sum)), where 0 log 0 is 0."""
    joint = (u.T @ v + v.T @ u) / (2 * len(u))
    independent = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    at = joint > 0
    return np.log(u.shape[1]) - (joint[at] * np.log(joint[at] / independent[at])).sum()


def fine_cases():
    """Fine clusters of two views: more clusters than images, as late in training, and certain ones."""
    rng, half, k = np.random.default_rng(31), 5, 12
    first = rng.normal(size=(half, k)) * 2
    data = single(np.concatenate([first, first + rng.normal(size=(half, k))]))
    def of(logits):
        u = softmax(logits)
        return information(u[:half], u[half:])
    labels = [[0, 1, 2, 3, 3, 7], [0, 1, 2, 3, 4, 11]]
    hard = [np.eye(k)[row] for row in labels]
    return {"shape": list(data.shape), "logits": flat(data), "value": of(data), "gradient": flat(difference(of, data)),
            "labels": labels, "certain_value": information(*hard)}
