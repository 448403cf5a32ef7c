"""Muon: momentum whose direction is made orthogonal by a Newton-Schulz iteration, for the matrices of a model.

Matrices of one shape are stepped as one batch: on a CPU the many small products cost more than their arithmetic.
"""
import torch


def orthogonal(g, steps=5):
    """The nearest matrix with singular values near 1; g is [batch, rows, columns]."""
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = g.shape[1] > g.shape[2]
    x = g.transpose(1, 2) if tall else g
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        s = x @ x.transpose(1, 2)
        x = a * x + (b * s + c * s @ s) @ x
    return x.transpose(1, 2) if tall else x


class Muon:
    def __init__(self, matrices, lr, momentum=0.95, decay=0.1):
        self.lr, self.momentum, self.decay = lr, momentum, decay
        self.groups = {}
        for m in matrices:
            self.groups.setdefault(tuple(m.shape), []).append(m)
        self.state = {shape: torch.zeros(len(ms), *shape) for shape, ms in self.groups.items()}

    @torch.no_grad()
    def step(self, part):
        """part: share of the full learning rate."""
        for shape, ms in self.groups.items():
            g = torch.stack([m.grad for m in ms])
            buf = self.state[shape].mul_(self.momentum).add_(g, alpha=1 - self.momentum)
            u = orthogonal(g.lerp(buf, self.momentum))
            lr = self.lr * part * max(1.0, shape[0] / shape[1]) ** 0.5
            for m, d in zip(ms, u):
                m.mul_(1 - self.lr * part * self.decay).add_(d, alpha=-lr)

    def state_dict(self):
        return {str(k): v for k, v in self.state.items()}

    def load_state_dict(self, d):
        for k in self.state:
            self.state[k].copy_(d[str(k)])
