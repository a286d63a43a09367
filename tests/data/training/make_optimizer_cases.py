#!/usr/bin/python3
"""Writes optimizer_cases.json: where PyTorch's optimizers and schedules lead, in f64.

Two parameters, w (3, 4) and b (5), start at w[i] = sin(i + 1), b[i] = cos(2 i). In step t = 0, 1, …
each has the gradient g[i] = sin(0.7 i + 0.3 t) + 0.1 value[i]. Values after steps 1, 10 and 100 are
kept. Lion and Muon, which PyTorch 1.13 lacks, are written out below from their papers.
"""
import json
import math
from pathlib import Path

import torch

torch.set_default_dtype(torch.float64)


def start():
    w = torch.sin(torch.arange(12.0) + 1).reshape(3, 4).requires_grad_()
    b = torch.cos(2 * torch.arange(5.0)).requires_grad_()
    return w, b


def gradient(x, t):
    i = torch.arange(x.numel(), dtype=x.dtype).reshape(x.shape)
    return torch.sin(0.7 * i + 0.3 * t) + 0.1 * x.detach()


def run(make, parameters):
    optimizer = make(*parameters)
    kept = []
    for t in range(100):
        for x in parameters:
            x.grad = gradient(x, t)
        optimizer.step()
        if t + 1 in (1, 10, 100):
            kept.append([x.detach().flatten().tolist() for x in parameters])
    return kept


class Lion:
    def __init__(self, parameters, lr, beta1, beta2, weight_decay):
        self.__dict__.update(locals())
        self.mean = [torch.zeros_like(x) for x in parameters]

    def step(self):
        for x, m in zip(self.parameters, self.mean):
            direction = torch.sign(self.beta1 * m + (1 - self.beta1) * x.grad)
            x.data = x.data - self.lr * (direction + self.weight_decay * x.data)
            m.copy_(self.beta2 * m + (1 - self.beta2) * x.grad)


class Muon:
    def __init__(self, x, lr, momentum, nesterov, weight_decay):
        self.__dict__.update(locals())
        self.mean = torch.zeros_like(x)

    def step(self):
        x, beta = self.x, self.momentum
        self.mean = beta * self.mean + (1 - beta) * x.grad
        u = (1 - beta) * x.grad + beta * self.mean if self.nesterov else self.mean
        u = u / (u.norm() + 1e-7)
        for _ in range(5):
            a = u @ u.T
            u = 3.4445 * u + (-4.7750 * a + 2.0315 * a @ a) @ u
        x.data = x.data * (1 - self.lr * self.weight_decay)
        x.data = x.data - self.lr * math.sqrt(max(1, x.shape[0] / x.shape[1])) * u


def schedule(make, steps):
    """The rate of each step."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    scheduler = make(optimizer)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def plateau():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.5, patience=2, cooldown=1, min_lr=0.05)
    losses = [3, 2, 2, 2, 2, 1.9, 2, 2, 2, 2, 2, 2, 1.8999, 1.5, math.nan, 1.6, 1.6, 1.6] + [1.6] * 12
    rates = []
    for loss in losses:
        scheduler.step(loss)
        rates.append(optimizer.param_groups[0]["lr"])
    return {"losses": ["nan" if loss != loss else loss for loss in losses], "rates": rates}


def main():
    o = torch.optim
    both = {
        "sgd": lambda w, b: o.SGD([w, b], lr=0.1),
        "sgd decay": lambda w, b: o.SGD([w, b], lr=0.1, weight_decay=0.3),
        "sgd momentum": lambda w, b: o.SGD([w, b], lr=0.03, momentum=0.9, dampening=0.2),
        "sgd nesterov": lambda w, b: o.SGD([w, b], lr=0.03, momentum=0.8, nesterov=True,
                                           weight_decay=0.1),
        "adam": lambda w, b: o.Adam([w, b], lr=0.02, betas=(0.8, 0.95), eps=1e-6),
        "adam decay": lambda w, b: o.Adam([w, b], lr=0.02, weight_decay=0.3),
        "adamw": lambda w, b: o.AdamW([w, b], lr=0.02, betas=(0.9, 0.99), weight_decay=0.3),
        "adamw groups": lambda w, b: o.AdamW([{"params": [w], "weight_decay": 0.3},
                                              {"params": [b], "weight_decay": 0, "lr": 0.04}],
                                             lr=0.02),
        "lion": lambda w, b: Lion([w, b], 0.01, 0.9, 0.98, 0.3),
    }
    cases = {name: run(make, start()) for name, make in both.items()}
    cases["muon"] = run(lambda w: Muon(w, 0.02, 0.95, True, 0.3), start()[:1])
    tall = torch.sin(torch.arange(12.0) + 1).reshape(4, 3).requires_grad_()
    cases["muon tall"] = run(lambda w: Muon(w, 0.02, 0.9, False, 0), [tall])

    s = o.lr_scheduler
    schedules = {
        "one_cycle": schedule(lambda x: s.OneCycleLR(x, 0.7, total_steps=40, cycle_momentum=False), 40),
        "one_cycle early": schedule(lambda x: s.OneCycleLR(
            x, 0.7, total_steps=13, pct_start=0.2, div_factor=10, final_div_factor=100,
            cycle_momentum=False), 13),
        "step": schedule(lambda x: s.StepLR(x, 7, 0.3), 30),
        "cosine": schedule(lambda x: s.CosineAnnealingLR(x, 30, 0.05), 30),
        "linear": schedule(lambda x: s.LinearLR(x, 1.0, 0.1, 20), 25),
    }
    target = Path(__file__).with_name("optimizer_cases.json")
    text = json.dumps({"optimizers": cases, "schedules": schedules, "plateau": plateau()})
    target.write_text(text.replace('], "', '],\n"') + "\n", encoding="utf-8")
    print(f"{len(cases)} optimizers, {len(schedules)} schedules, {target.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
