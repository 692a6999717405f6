"""Whether onnx.checker takes a model and onnxruntime gives what was written beside it.

  python check_onnx.py CASE.json ...    {"model": path, "outputs": [names], "steps": [{"inputs": {name: {"shape", "numbers"}},
                                         "outputs": {...}}]}: h_in of a step is h_out of the one before, where not given
Exit code 3: onnx or onnxruntime is missing.
"""
import json
import sys

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as error:
    print(error)
    sys.exit(3)

TOLERANCE = 1e-6


def array(given):
    return np.array(given["numbers"], dtype=np.float32).reshape(given["shape"])


def check(case):
    onnx.checker.check_model(onnx.load(case["model"]), full_check=True)
    session = onnxruntime.InferenceSession(case["model"], providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    before, worst = {}, 0.0
    for step in case["steps"]:
        inputs = {name: array(given) for name, given in step["inputs"].items()}
        for port in session.get_inputs():
            inputs.setdefault(port.name, before.get(port.name))
        results = dict(zip(names, session.run(names, inputs)))
        before = {"h_in": results.get("h_out")}
        for name, given in step["outputs"].items():
            expected = array(given)
            assert results[name].shape == expected.shape, (name, results[name].shape, expected.shape)
            worst = max(worst, float(np.max(np.abs(results[name] - expected) / np.maximum(1, np.abs(expected)))))
    print(f"{case['model']}: {worst:.2g}")
    assert worst <= TOLERANCE, f"{case['model']}: {worst} above {TOLERANCE}"


for path in sys.argv[1:]:
    with open(path) as file:
        check(json.load(file))
