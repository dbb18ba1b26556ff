# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Peak memory of TF1 -> native -> TF1 for a model of a given size.

    python benchmarks/checkpoint_memory.py --reference ../shared \
        --config pretrain/large --folder large [--slots]

Writes random values (drawn when read, so the source takes no memory), converts
them in processes of their own and reports each one's peak resident memory,
also over what importing TensorFlow takes, as a multiple of the checkpoint's
size. At the end every tensor is compared with what was written, bit for bit.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import time
import zlib

import numpy as np

STEPS = ("import", "random_to_tf1", "tf1_to_native", "native_to_tf1", "verify")


def weights_of(args):
    """Random tensors by shape."""
    from electra_tf.checkpoints.weights import (
        SLOT_SUFFIXES,
        STEP_NAME,
        TensorSpec,
        Weights,
    )

    class RandomWeights(Weights):
        def read(self, name):
            if name == STEP_NAME:
                return np.asarray(1234, np.int64)
            random = np.random.default_rng(zlib.crc32(name.encode()))
            return random.standard_normal(self.specs[name].shape, np.float32)

    path = pathlib.Path(args.reference, "golden/variables_all_configs.json")
    variables = json.loads(path.read_text())[args.config]
    specs = {STEP_NAME: TensorSpec((), np.dtype(np.int64))}
    for variable in variables["creation_order_model_variables"]:
        for suffix in ("", *SLOT_SUFFIXES) if args.slots else ("",):
            name = variable["name"] + suffix
            spec = TensorSpec(tuple(variable["shape"]), np.dtype(np.float32))
            if variable["name"] != STEP_NAME:
                specs[name] = spec
    return RandomWeights("random", "memory", specs)


def run(step, args):
    from electra_tf.checkpoints import tf1, tf2

    first, second, third = (
        os.path.join(args.folder, name, "model.ckpt-1234")
        for name in ("tf1", "native", "again")
    )
    if step == "random_to_tf1":
        tf1.write_tf1(weights_of(args), first, overwrite=True)
    elif step == "tf1_to_native":
        tf2.write_native(tf1.open_tf1(first), second, overwrite=True)
    elif step == "native_to_tf1":
        tf1.write_tf1(tf2.open_native(second), third, overwrite=True)
    elif step == "verify":
        source, result = weights_of(args), tf1.open_tf1(third)
        assert result.specs == source.specs
        for name in source.specs:
            value, wanted = result.read(name), source.read(name)
            assert value.dtype == wanted.dtype, name
            assert value.tobytes() == wanted.tobytes(), name


def child(step, args):
    started = time.monotonic()
    run(step, args)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = time.monotonic() - started
    print(json.dumps({"peak": peak, "seconds": seconds}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", default="../shared")
    parser.add_argument("--config", default="pretrain/large")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--slots", action="store_true")
    parser.add_argument("--step", choices=STEPS)
    args = parser.parse_args()
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    if args.step:
        child(args.step, args)
        return
    source = weights_of(args)
    size = sum(spec.size_in_bytes for spec in source.specs.values())
    parameters = sum(np.prod(s, dtype=np.int64) for s in source.shapes.values())
    print(
        f"{args.config}: {parameters:,} parameters, {len(source.specs)}"
        f" tensors, {size / 2**30:.2f} GiB"
    )
    base = 0
    for step in STEPS:
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--step", step],
            check=True,
            capture_output=True,
            text=True,
        )
        result = json.loads(done.stdout.splitlines()[-1])
        base = base or result["peak"]
        print(
            f"{step:15} peak {result['peak'] / 2**30:5.2f} GiB"
            f" = {result['peak'] / size:.2f}x the size"
            f" ({(result['peak'] - base) / size:.2f}x beyond importing),"
            f" {result['seconds']:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
