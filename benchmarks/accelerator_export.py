# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Export of a training step to JAX, and of trained weights to a checkpoint.

The program has few arguments: all variables of one rate and one decay are one
vector, as are their slots, which the device updates in one loop and in place. A
step with an argument for each of 1,200 arrays spends more time on the
bookkeeping of arguments than on some of its matrix products.
"""

import json
import os
import pathlib
import re
import sys

import harness  # noqa: F401 (makes the product importable)
import numpy as np
from accelerator import (
    ABOUT,
    PROGRAM,
    RECORDS,
    STATE,
    STEP,
    WEIGHTS,
    make_folder,
)

PRECISIONS = {"float32": "", "bf16": "bf16"}  # name -> hparam `mixed_precision`
# Operations of TensorFlow's dialect that devices do not support.
_FORWARDED, _ERROR_FUNCTION = "mhlo.copy", "mhlo.erf"
_ALIAS = re.compile(
    r"parameter_number = (\d+) .*?output_index = array<i64: (\d+)>"
)


def export(args):
    """Write the program, state, records and description to `args.folder`."""
    import tensorflow as tf

    config = _make_config(args)
    folder = make_folder(args.folder)
    records = _read_records(config, args)
    np.savez_compressed(folder / RECORDS, **records)
    step = _Step(config)
    parts = step.parts()
    np.savez_compressed(folder / STATE, **{p.name: p.start() for p in parts})
    program = _flat_program(step, parts)
    (folder / PROGRAM).write_bytes(program)
    batches = _batches(records, args.batch, args.check)
    about = {
        "shape": [args.batch, args.length],
        "steps": config.num_train_steps,
        "state": [{"name": p.name, "members": p.members()} for p in parts],
        "expected": [
            step.function(
                {name: tf.constant(value) for name, value in batch.items()}
            )
            .numpy()
            .tolist()
            for batch in batches
        ],
        "numbers": step.numbers(),
        "hparams": json.loads(config.to_json()),
    }
    (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n")
    print(
        f"{folder}: a program of {len(program) / 1e6:.1f} MB with"
        f" {len(parts)} arrays of state, {len(records['length']):,} records"
    )


def _make_config(args):
    """Return the config of the step; exit if the step cannot be exported."""
    from configure.pretraining import PretrainingConfig

    hparams = {
        "model_size": args.model_size,
        "train_batch_size": args.batch,
        "max_seq_length": args.length,
        "num_train_steps": args.steps,
        "vocab_file": os.path.abspath(args.vocab_file),
        "pretrain_tfrecords": args.records,
        "mixed_precision": PRECISIONS[args.precision],
        **args.hparams,
        "jit_compile": True,
        "threads": 1,
    }
    config = PretrainingConfig.create("step", args.folder, **hparams)
    supported = {"optimizer": ("original",), "mixed_precision": ("", "bf16")}
    supported["training_schedule"] = ("joint",)
    for name, values in supported.items():
        if getattr(config, name) not in values:
            sys.exit(
                f"error: {name} {getattr(config, name)!r} cannot be exported;"
                f" expected {' or '.join(map(repr, values))}. Change --hparams"
            )
    return config


class _Step:
    """A compiled step of a new model, with its variables."""

    def __init__(self, config):
        import tensorflow as tf

        from electra_tf.optimization.optimizer import variable_name
        from electra_tf.pretraining import build
        from electra_tf.pretraining.model import build_model

        self._name_of = variable_name
        self.model = build_model(config)
        self.optimizer = build.build_optimizer(config, self.model)
        counter = tf.Variable(0, dtype=tf.int64, trainable=False, name=STEP)
        self._loop = build.build_train_loop(
            config,
            self.model,
            self.optimizer,
            iter([]),
            counter,
            tf.distribute.get_strategy(),
        )
        self.function = tf.function(
            self._loop._distributed_step, autograph=False, jit_compile=True
        )
        shape = [config.train_batch_size, config.max_seq_length]
        self.batch = {
            name: tf.TensorSpec(shape, tf.int32)
            for name in ("input_ids", "input_mask", "segment_ids")
        }
        self._concrete = self.function.get_concrete_function(self.batch)
        self.captured = [
            self._variable(captured)
            for captured in self._concrete.captured_inputs
        ]

    def _variable(self, captured):
        for variable in self._concrete.graph.variables:
            if variable.handle is captured:
                return variable
        return captured  # a constant

    def numbers(self):
        """Return the names of the values to log that a step returns."""
        return list(self._loop._names)

    def stablehlo(self):
        """Return the program as StableHLO.

        The program maps the batch, by name, and the captured values to the
        numbers and the new values of variables.
        """
        import tensorflow as tf

        batch = {n: tf.zeros(s.shape, s.dtype) for n, s in self.batch.items()}
        make = self.function.experimental_get_compiler_ir(batch)
        return make(stage="stablehlo_serialized")

    def parts(self):
        """Return the state; variables that the optimizer joins are one part."""
        named = {
            self._name_of(v): v for v in self.captured if hasattr(v, "handle")
        }
        parts, joined = [], set()
        for number, names in enumerate(self.optimizer.groups()):
            names = [name for name in names if name in named]
            for label, variables in (
                ("weights", named),
                ("adam_m", self.optimizer.m),
                ("adam_v", self.optimizer.v),
            ):
                members = [variables[name] for name in names]
                labels = [self._name_of(member) for member in members]
                parts.append(_Part(f"{label}_{number}", labels, members))
                joined |= {id(member) for member in members}
        for index, value in enumerate(self.captured):
            if id(value) not in joined:
                variable = hasattr(value, "handle")
                name = self._name_of(value) if variable else f"constant_{index}"
                parts.append(_Part(name, [name], [value]))
        return parts


class _Part:
    """Variables that are one array of the program's state."""

    def __init__(self, name, labels, values):
        self.name, self.values, self._labels = name, values, labels
        self.is_joined = len(values) > 1

    def members(self):
        pairs = zip(self._labels, self.values, strict=True)
        return [[label, value.shape.as_list()] for label, value in pairs]

    def start(self):
        arrays = [value.numpy() for value in self.values]
        if not self.is_joined:
            return arrays[0]
        return np.concatenate([array.reshape(-1) for array in arrays])


def _flat_program(step, parts):
    """Return the serialized program: (batch, state) -> (numbers, state)."""
    import jax
    import jax.export
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    inner, outputs = _exported(step)
    index = {id(value): i for i, value in enumerate(step.captured)}

    def flat_step(batch, state):
        arrays = [None] * len(step.captured)
        for part, array in zip(parts, state, strict=True):
            begin = 0
            for value in part.values:
                size = value.shape.num_elements()
                piece = array
                if part.is_joined:
                    piece = array[begin : begin + size].reshape(value.shape)
                arrays[index[id(value)]] = piece
                begin += size
        inputs = [batch[name] for name in sorted(batch)]
        numbers, *changed = inner.call(*inputs, *arrays)
        for position, array in zip(outputs, changed, strict=True):
            arrays[position] = array
        following = []
        for part in parts:
            members = [arrays[index[id(value)]] for value in part.values]
            if part.is_joined:
                members = [jnp.concatenate([m.reshape(-1) for m in members])]
            following += members
        return numbers, following

    spec = jax.ShapeDtypeStruct
    batch = {n: spec(s.shape, jnp.int32) for n, s in step.batch.items()}
    state = [spec(a.shape, a.dtype) for a in (p.start() for p in parts)]
    # Two of JAX's checks are disabled, because no operation of the program
    # depends on the platform, and all compilers of XLA support the error
    # function under this name.
    check = jax.export.DisabledSafetyCheck
    exported = jax.export.export(
        jax.jit(flat_step, donate_argnums=1),
        disabled_checks=[check.platform(), check.custom_call("mhlo.erf")],
    )(batch, state)
    return exported.serialize()


def _exported(step):
    """Return the step as an `Exported`, and the indices of changed inputs."""
    import jax
    import jax.export
    from jax._src.export._export import _module_to_bytecode
    from jax._src.interpreters import mlir
    from jax.extend.mlir import ir

    with mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse(step.stablehlo())
        _translate(module)
        attribute = str(module.operation.attributes["mhlo.input_output_alias"])
        aliases = {int(o): int(p) for p, o in _ALIAS.findall(attribute)}
        for name in list(module.operation.attributes):
            if name.name.startswith("mhlo."):
                del module.operation.attributes[name.name]
        (main,) = [
            f
            for f in module.body.operations
            if f.attributes["sym_name"].value == "main"
        ]
        inputs, results = main.type.inputs, main.type.results
        in_avals = tuple(_aval(ir, t) for t in inputs)
        out_avals = tuple(_aval(ir, t) for t in results)
        # JAX serializes the module in a form that later versions can read.
        serialized = _module_to_bytecode(module)
    tree = jax.tree_util.tree_structure
    exported = jax.export.Exported(
        fun_name="step",
        in_tree=tree((tuple(in_avals), {})),
        in_avals=in_avals,
        out_tree=tree(out_avals),
        out_avals=out_avals,
        in_shardings_hlo=(None,) * len(in_avals),
        out_shardings_hlo=(None,) * len(out_avals),
        nr_devices=1,
        platforms=("cpu",),
        ordered_effects=(),
        unordered_effects=(),
        disabled_safety_checks=(jax.export.DisabledSafetyCheck.platform(),),
        mlir_module_serialized=serialized,
        calling_convention_version=jax.export.maximum_supported_calling_convention_version,
        module_kept_var_idx=tuple(range(len(in_avals))),
        uses_global_constants=False,
        _get_vjp=None,
    )
    first = len(step.batch)
    outputs = [aliases[i] - first for i in range(1, len(out_avals))]
    return exported, outputs


def _aval(ir, kind):
    import jax

    tensor = ir.RankedTensorType(kind)
    names = {
        "i32": "int32",
        "i64": "int64",
        "f32": "float32",
        "bf16": "bfloat16",
    }
    dtype = names.get(str(tensor.element_type), str(tensor.element_type))
    return jax.core.ShapedArray(tuple(tensor.shape), np.dtype(dtype))


def _translate(module):
    """Replace operations of TensorFlow's dialect by portable operations."""
    from jax.extend.mlir import ir
    from jaxlib.mlir.dialects import chlo

    def visit(operation):
        for region in operation.regions:
            for block in region.blocks:
                for inner in list(block.operations):
                    visit(inner.operation)
        if operation.name == _FORWARDED:
            operation.results[0].replace_all_uses_with(operation.operands[0])
            operation.erase()
        elif operation.name == _ERROR_FUNCTION:
            with ir.InsertionPoint(operation):
                portable = chlo.ErfOp(operation.operands[0])
            operation.results[0].replace_all_uses_with(portable.result)
            operation.erase()
        elif operation.name.startswith("mhlo."):
            raise ValueError(
                f"{operation.name}: expected an operation that _translate"
                " replaces by a portable one. Extend _translate"
            )

    visit(module.operation)


def _read_records(config, args):
    """Return ids [N, L], lengths [N] and starts of second segments [N].

    Without record files, the rows are full and have drawn tokens.
    """
    if args.records:
        ids, masks, segments = _read_rows(config, args.examples)
    else:
        rng = np.random.default_rng(config.seed)
        count = args.examples or 64 * args.batch
        ids = rng.integers(5, config.token_rows, (count, args.length))
        masks, segments = np.ones_like(ids), np.zeros_like(ids)
    length = masks.sum(1)
    small = np.uint16 if ids.max() < 2**16 else np.int32
    return {
        "input_ids": ids.astype(small),
        "length": length.astype(np.int32),
        "second_segment": (length - segments.sum(1)).astype(np.int32),
    }


def _read_rows(config, most):
    """Return ids, masks and segments, [N, L] each, of at most `most` rows."""
    from electra_tf.data.input_pipeline import each_example_once

    batches, count = [], 0
    for batch in each_example_once(config, 1024):
        names = ("input_ids", "input_mask", "segment_ids")
        batches.append([batch[name].numpy() for name in names])
        count += len(batches[-1][0])
        if most and count >= most:
            break
    columns = zip(*batches, strict=True)
    return [np.concatenate(column)[:most] for column in columns]


def _batches(records, size, count):
    """Yield the first batches, int32 [B, L] each."""
    number = len(records["length"])
    positions = np.arange(records["input_ids"].shape[1])[None]
    for index in range(count):
        rows = np.arange(index * size, (index + 1) * size) % number
        mask = positions < records["length"][rows][:, None]
        second = positions >= records["second_segment"][rows][:, None]
        yield {
            "input_ids": records["input_ids"][rows].astype(np.int32),
            "input_mask": mask.astype(np.int32),
            "segment_ids": (mask & second).astype(np.int32),
        }


def bring_home(folder, trained, model_dir):
    """Write the weights that `run` trained to a new model directory.

    The checkpoint has the optimizer's slots and the count of steps. A run that
    continues from the checkpoint reads the records from their start.
    """
    from electra_tf.checkpoints import formats, tf2
    from electra_tf.checkpoints.weights import MemoryWeights
    from electra_tf.training import checkpointing

    about = json.loads(pathlib.Path(folder, ABOUT).read_text())
    hparams = about["hparams"]
    with np.load(pathlib.Path(trained, WEIGHTS)) as stored:
        arrays = {
            name: stored[name]
            for name in stored.files
            if not name.startswith("constant_")
        }
    folder = make_folder(model_dir)
    path = str(folder / f"model.ckpt-{int(arrays[STEP])}")

    def complete():
        checkpointing.write_config(
            model_dir, json.dumps(hparams, indent=2) + "\n"
        )
        formats.complete_folder(model_dir, hparams, hparams["vocab_file"])

    tf2.write_native(MemoryWeights(arrays, trained), path, complete=complete)
    print(f"{path} has {len(arrays):,} tensors")
