#!/usr/bin/env python3
"""Writes tests/train/fixtures/adamw_8bit.json: maps and rounding of bitsandbytes, and steps of AdamW with them.

    make_8bit_fixture.py OUT.json        # needs torch and bitsandbytes (0.49.1 here), no GPU

bitsandbytes' optimizers run on GPUs only, so the steps are torch's own formula of AdamW between bitsandbytes'
quantize_blockwise and dequantize_blockwise. Inputs are whole numbers times powers of two: exact in any language.
"""
import json
import math
import sys

import bitsandbytes
import torch
from bitsandbytes import functional as F

COUNT, BLOCK, STEPS = 1300, 256, 4
LR, BETA1, BETA2, EPS, DECAY = 1e-2, 0.9, 0.999, 1e-8, 1e-2


def numbers(salt):
    return torch.tensor([float((i * 7919 + salt * 104729) % 2003 - 1001) * 2.0 ** -((i + salt) % 11 + 10) for i in range(COUNT)])


def quantize(x, code):
    q, state = F.quantize_blockwise(x, code=code.clone(), blocksize=BLOCK)  # on the CPU it writes into the map
    return q, state.absmax


def dequantize(q, absmax, code):
    return F.dequantize_blockwise(q, absmax=absmax, code=code.clone(), blocksize=BLOCK)


def main():
    signed, unsigned = F.create_dynamic_map(signed=True), F.create_dynamic_map(signed=False)
    facts = {"bitsandbytes": bitsandbytes.__version__, "signed": signed.tolist(), "unsigned": unsigned.tolist()}
    codes, absmax = quantize(numbers(1), signed)
    facts["codes_signed"], facts["absmax_signed"] = codes.tolist(), absmax.tolist()
    codes, absmax = quantize(numbers(1).abs(), unsigned)
    facts["codes_unsigned"] = codes.tolist()
    p, m, v = numbers(0), torch.zeros(COUNT), torch.zeros(COUNT)
    for step in range(1, STEPS + 1):
        g = numbers(step)
        m, v = BETA1 * m + (1 - BETA1) * g, BETA2 * v + (1 - BETA2) * g * g
        p = p * (1 - LR * DECAY) - LR / (1 - BETA1 ** step) * m / (v.sqrt() / math.sqrt(1 - BETA2 ** step) + EPS)
        q, absmax = quantize(m, signed)
        # Their optimizers keep the sign of what would become zero.
        zero = int((signed == 0).nonzero()[0])
        q = torch.where((m < 0) & (q == zero), q - 1, q)
        m = dequantize(q, absmax, signed)
        q, absmax = quantize(v, unsigned)
        # On the CPU their library puts -1 in the place of a map's first value: what is nearest to 0 gets the second.
        nearest_0 = v <= absmax.repeat_interleave(BLOCK)[:COUNT] * unsigned[1] / 2
        v = dequantize(torch.where(nearest_0, 0, q).to(torch.uint8), absmax, unsigned)
    facts["parameter"] = p.tolist()
    with open(sys.argv[1], "w") as out:
        json.dump(facts, out)
        out.write("\n")


main()
