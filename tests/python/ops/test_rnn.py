# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close


def pair(kind, *args, **kwargs):
    ours = kind(*args, **kwargs)
    theirs = kind(*args, **kwargs)
    theirs.load_state_dict(ours.state_dict())
    return ours.to("tpu"), theirs


def assert_same_run(ours, theirs, x, state=None):
    """Outputs, final states and the gradients of input and parameters are the CPU's."""
    x = x.requires_grad_()
    moved = x.detach().to("tpu").requires_grad_()

    def to(s):
        if s is None:
            return None
        return tuple(t.to("tpu") for t in s) if isinstance(s, tuple) else s.to("tpu")

    def flat(r):
        return [t for e in r for t in (e if isinstance(e, tuple) else (e,))]

    got, want = ours(moved, to(state)), theirs(x, state)
    got, want = ((r,) if isinstance(r, torch.Tensor) else r for r in (got, want))
    for g, w in zip(flat(got), flat(want), strict=True):
        assert_close(g.cpu(), w)
    sum(t.square().sum() for t in flat(got)).backward()
    sum(t.square().sum() for t in flat(want)).backward()
    assert_close(moved.grad.cpu(), x.grad, rtol=1e-4, atol=1e-5)
    for g, w in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_close(g.grad.cpu(), w.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
@pytest.mark.parametrize(
    "options",
    [{}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True}, {"bias": False}],
)
def test_recurrent_layers_match_cpu(kind, options):
    ours, theirs = pair(kind, 5, 4, **options)
    assert_same_run(ours, theirs, torch.randn(3, 2, 5))


def test_lstm_with_an_initial_state_matches_cpu():
    ours, theirs = pair(torch.nn.LSTM, 5, 4)
    assert_same_run(
        ours, theirs, torch.randn(3, 2, 5), (torch.randn(1, 2, 4), torch.randn(1, 2, 4))
    )


@pytest.mark.parametrize("bias", [False, True])
def test_cells_match_cpu(bias):
    ours, theirs = pair(torch.nn.LSTMCell, 5, 4, bias=bias)
    assert_same_run(ours, theirs, torch.randn(2, 5), (torch.randn(2, 4), torch.randn(2, 4)))
    ours, theirs = pair(torch.nn.GRUCell, 5, 4, bias=bias)
    assert_same_run(ours, theirs, torch.randn(2, 5), torch.randn(2, 4))


def test_gradient_of_only_one_of_the_lstm_cells_states_matches_cpu():
    for which in (0, 1):
        ours, theirs = pair(torch.nn.LSTMCell, 5, 4)
        x = torch.randn(2, 5)
        ours(x.to("tpu"))[which].sum().backward()
        theirs(x)[which].sum().backward()
        assert_close(ours.weight_ih.grad.cpu(), theirs.weight_ih.grad)


def test_packed_sequences_match_cpu():
    ours, theirs = pair(torch.nn.LSTM, 5, 4)
    x, lengths = torch.randn(4, 3, 5), torch.tensor([4, 2, 1])
    pack = torch.nn.utils.rnn.pack_padded_sequence
    got, want = ours(pack(x.to("tpu"), lengths)), theirs(pack(x, lengths))
    assert_close(got[0].data.cpu(), want[0].data)
    assert_close(got[1][0].cpu(), want[1][0])
