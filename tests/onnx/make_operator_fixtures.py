"""Writes operators.json: small ONNX models, each with inputs and what onnxruntime makes of them.

  python make_operator_fixtures.py operators.json      (onnx 1.23.2, onnxruntime 1.32.0, numpy)
"""
import json
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(7)


def numbers(*shape, low=-2.0, high=2.0):
    return random.uniform(low, high, shape).astype(np.float32)


def ints(*values):
    return np.array(values, dtype=np.int64)


def described(name, array):
    array = np.asarray(array)
    kind = "ints" if array.dtype.kind in "iub" else "floats"
    return {"name": name, "shape": list(array.shape), kind: [float(x) if kind == "floats" else int(x) for x in array.ravel()]}


def case(name, nodes, inputs, outputs, constants=(), opset=18):
    """inputs: name -> array; outputs: names; constants: name -> array."""
    kinds = {"f": TensorProto.FLOAT, "i": TensorProto.INT64}
    graph = helper.make_graph(
        nodes, name,
        [helper.make_tensor_value_info(n, kinds[a.dtype.kind], a.shape) for n, a in inputs.items()],
        [helper.make_empty_tensor_value_info(n) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in dict(constants).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    results = session.run(outputs, dict(inputs))
    return {"name": name, "model": model.SerializeToString().hex(),
            "inputs": [described(n, a) for n, a in inputs.items()],
            "outputs": [described(n, a) for n, a in zip(outputs, results)]}


def simple(op, inputs, constants=(), opset=18, outputs=("y",), **attributes):
    constants = dict(constants)
    names = [*inputs, *constants]
    return case(op, [helper.make_node(op, names, list(outputs), **attributes)], dict(inputs), list(outputs), constants,
                opset)


def cases():
    x = numbers(3, 4)
    for op in ["Abs", "Cos", "Elu", "Erf", "Exp", "HardSigmoid", "Identity", "LeakyRelu", "Neg", "Relu", "Selu", "Sigmoid",
               "Sin", "Softmax", "Softplus", "Softsign", "Tanh", "Flatten", "Shape", "Transpose", "Dropout"]:
        yield simple(op, {"x": x})
    yield simple("Elu", {"x": x}, alpha=0.5)
    yield simple("LeakyRelu", {"x": x}, alpha=0.3)
    yield simple("Softmax", {"x": numbers(2, 3, 4)}, axis=1)
    for op in ["Log", "Sqrt", "Reciprocal"]:
        yield simple(op, {"x": numbers(3, 4, low=0.1)})
    for op in ["Add", "Sub", "Mul", "Div", "Max", "Min"]:
        yield simple(op, {"x": x}, {"b": numbers(4, low=0.5)})
        yield simple(op, {"x": numbers(3, 1, 2), "z": numbers(4, 2, low=0.5)})
    yield simple("Max", {"x": x, "z": numbers(3, 4), "w": numbers(1)})
    yield simple("Pow", {"x": numbers(3, 4, low=0.1)}, {"b": np.float32(1.5)})
    yield simple("Clip", {"x": x}, {"low": np.float32(-0.5), "high": np.float32(0.75)})
    yield case("ClipWithoutLow", [helper.make_node("Clip", ["x", "", "high"], ["y"])], {"x": x}, ["y"],
               {"high": np.float32(0.25)})
    yield simple("Gemm", {"x": x}, {"w": numbers(4, 5), "b": numbers(5)})
    yield simple("Gemm", {"x": x}, {"w": numbers(5, 4), "b": numbers(5)}, transB=1)
    yield simple("Gemm", {"x": numbers(4, 3), "w": numbers(5, 4), "b": numbers(3, 1)}, transA=1, transB=1, alpha=0.5,
                 beta=2.0)
    yield simple("Gemm", {"x": x}, {"w": numbers(4, 5)})
    yield simple("MatMul", {"x": x}, {"w": numbers(4, 5)})
    yield simple("MatMul", {"x": numbers(2, 1, 3, 4), "w": numbers(5, 4, 2)})
    yield simple("MatMul", {"x": numbers(4), "w": numbers(4, 2)})
    yield simple("MatMul", {"x": x, "w": numbers(4)})
    yield simple("LayerNormalization", {"x": x}, {"scale": numbers(4), "shift": numbers(4)}, epsilon=1e-4)
    yield simple("BatchNormalization", {"x": x}, {"scale": numbers(4), "shift": numbers(4), "mean": numbers(4),
                                                  "variance": numbers(4, low=0.1)})
    yield simple("Concat", {"x": x, "z": numbers(3, 2)}, axis=1)
    yield simple("Concat", {"x": x, "z": numbers(2, 4)}, axis=-2)
    yield simple("Split", {"x": x}, {"sizes": ints(1, 3)}, outputs=("y", "z"), axis=1)
    yield simple("Split", {"x": x}, outputs=("y", "z"), axis=1, num_outputs=2)
    yield simple("Split", {"x": x}, outputs=("y", "z"), opset=11, axis=1, split=[3, 1])
    yield simple("Slice", {"x": x}, {"starts": ints(1), "ends": ints(9)})
    yield simple("Slice", {"x": x}, {"starts": ints(-1, 0), "ends": ints(-9, 3), "axes": ints(1, 0), "steps": ints(-2, 2)})
    yield simple("Gather", {"x": x}, {"which": ints(2, -1, 0)}, axis=1)
    yield simple("Gather", {"x": x}, {"which": np.int64(1)}, axis=0)
    yield simple("Squeeze", {"x": numbers(1, 3, 1, 2)}, {"axes": ints(0, -2)})
    yield simple("Squeeze", {"x": numbers(1, 3, 1, 2)})
    yield simple("Unsqueeze", {"x": x}, {"axes": ints(0, -1)})
    yield simple("Unsqueeze", {"x": x}, opset=11, axes=[1])
    yield simple("Reshape", {"x": x}, {"shape": ints(2, -1)})
    yield simple("Reshape", {"x": numbers(2, 3, 2)}, {"shape": ints(0, -1)})
    yield simple("Flatten", {"x": numbers(2, 3, 2)}, axis=2)
    yield simple("Transpose", {"x": numbers(2, 3, 4)}, perm=[2, 0, 1])
    yield simple("Expand", {"x": numbers(3, 1)}, {"shape": ints(2, 1, 4)})
    yield simple("ReduceMean", {"x": numbers(2, 3, 4)}, {"axes": ints(1, 2)})
    yield simple("ReduceMean", {"x": numbers(2, 3, 4)}, opset=13, axes=[-1], keepdims=0)
    yield simple("ReduceSum", {"x": numbers(2, 3, 4)}, {"axes": ints(0)}, keepdims=0)
    yield simple("ReduceSum", {"x": numbers(2, 3)})
    yield simple("Cast", {"x": x}, to=TensorProto.INT64)
    yield case("Constants", [
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(numbers(4))),
        helper.make_node("Constant", [], ["d"], value_float=0.5),
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["o"], value=numpy_helper.from_array(np.array([2], np.float32))),
        helper.make_node("Mul", ["c", "d"], ["cd"]),
        helper.make_node("Add", ["x", "cd"], ["e"]),
        helper.make_node("Add", ["e", "o"], ["y"])], {"x": x}, ["y"])
    cell = {"w": numbers(1, 9, 4), "r": numbers(1, 9, 3), "b": numbers(1, 18)}
    for before in [0, 1]:
        yield case(f"GRU{before}", [helper.make_node("GRU", ["x", "w", "r", "b", "", "h"], ["y", "h_out"], hidden_size=3,
                                                     linear_before_reset=before)],
                   {"x": numbers(2, 5, 4), "h": numbers(1, 5, 3)}, ["y", "h_out"], cell)
    yield case("GRUFromZero", [helper.make_node("GRU", ["x", "w", "r"], ["y", "h_out"], hidden_size=3)],
               {"x": numbers(1, 2, 4), **{n: cell[n] for n in "wr"}}, ["y", "h_out"])
    cell = {"w": numbers(1, 12, 4), "r": numbers(1, 12, 3), "b": numbers(1, 24)}
    yield case("LSTM", [helper.make_node("LSTM", ["x", "w", "r", "b", "", "h", "c"], ["y", "h_out", "c_out"], hidden_size=3)],
               {"x": numbers(2, 5, 4), "h": numbers(1, 5, 3), "c": numbers(1, 5, 3)}, ["y", "h_out", "c_out"], cell)


if __name__ == "__main__":
    with open(sys.argv[1], "w") as file:
        made = list(cases())
        json.dump({"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__, "cases": made}, file,
                  separators=(",", ":"))
        file.write("\n")
        print(len(made), "cases")
