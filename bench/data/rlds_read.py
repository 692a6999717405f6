"""The Python peer of rlds_read: tensorflow-datasets and tf.data on one thread.

    rlds_read.py RLDS_FOLDER

Answers "ready VERSIONS", then each line, the name of a pipeline below, with "SECONDS COUNT" of one pass.
"""
import os
import sys
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
import tensorflow_datasets as tfds


def leaves(feature, path=()):
    """Leaves below the steps with their paths, as the keys of a record have them."""
    if isinstance(feature, (tfds.features.FeaturesDict, dict)):
        for name, child in feature.items():
            yield from leaves(child, path + (name,))
    else:
        yield path, feature


def pipelines(builder, folder):
    """Built once, as a training script does.

    undecoded   trajectories whose steps are not decoded (what octo's and dlimp's loaders ask for)
    parsed      the numbers alone, by tf.data's own parser: no feature connector in between
    decoded     what as_dataset() gives by default: every step with its frames decoded, in one flat stream
    frames      every frame of the undecoded trajectories, decoded
    """
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    read = tfds.ReadConfig(interleave_cycle_length=1, num_parallel_calls_for_decode=1,
                           num_parallel_calls_for_interleave_files=1, options=options)
    undecoded = builder.as_dataset(split="train", read_config=read, decoders={"steps": tfds.decode.SkipDecoding()})
    step = builder.info.features["steps"].feature
    numbers = {}
    for path, leaf in leaves(step):
        if type(leaf) in (tfds.features.Tensor, tfds.features.Scalar):
            kind = tf.float32 if leaf.np_dtype.kind == "f" else tf.int64
            numbers["steps/" + "/".join(path)] = tf.io.FixedLenSequenceFeature(leaf.shape, kind, allow_missing=True)
    files = sorted(tf.io.gfile.glob(os.path.join(folder, "*-train.tfrecord-*")))
    parsed = tf.data.TFRecordDataset(files).map(lambda r: tf.io.parse_single_example(r, numbers)).with_options(options)
    observation = step["observation"]
    cameras = [k for k, f in observation.items() if isinstance(f, tfds.features.Image)]
    frames = undecoded.flat_map(lambda e: tf.data.Dataset.from_tensor_slices({k: e["steps"]["observation"][k] for k in cameras}))
    frames = frames.map(lambda f: {k: tf.io.decode_image(v, channels=3, expand_animations=False) for k, v in f.items()})
    decoded = builder.as_dataset(split="train", read_config=read).flat_map(lambda e: e["steps"])
    return {"undecoded": (undecoded, lambda e: int(e["steps"]["is_first"].shape[0])),
            "parsed": (parsed, lambda e: int(e["steps/is_first"].shape[0])),
            "decoded": (decoded, lambda e: 1),
            "frames": (frames, lambda e: len(cameras))}


def main():
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    built = pipelines(tfds.builder_from_directory(sys.argv[1]), sys.argv[1])
    print("ready", "tensorflow", tf.__version__, "tensorflow-datasets", tfds.__version__, flush=True)
    for line in sys.stdin:
        dataset, count_of = built[line.strip()]
        count = 0
        begin = time.perf_counter()
        for element in dataset:
            count += count_of(element)
        print(time.perf_counter() - begin, count, flush=True)
    print("end", flush=True)


if __name__ == "__main__":
    main()
